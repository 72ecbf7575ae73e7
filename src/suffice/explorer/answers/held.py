"""What is held, and what comes and goes. Files that the page sends are streamed to a file of ours, no larger than the limit, and
removed when they are not needed."""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncIterable, Callable
from pathlib import Path
from typing import Any

from suffice.basis.version import VERSION
from suffice.errors import SufficeError
from suffice.explorer.requests.calls import Call
from suffice.explorer.shelf import Shelf, TooMuch, bundled_model, read_model, read_table

UPLOAD_BYTES = 2**30
"""No file that is uploaded is larger."""


def state(request: Call) -> dict[str, Any]:
    """All that is held."""
    from suffice.formats.bundled import NAMES

    shelf = request.shelf
    return {
        "version": VERSION,
        "models": [model.facts() for model in list(shelf.models.values())],
        "tables": [table.facts() for table in list(shelf.tables.values())],
        "bundled": list(NAMES),
        "job": None if shelf.job is None else shelf.job.facts(),
        "limits": {"upload_bytes": UPLOAD_BYTES},
        "open": shelf.open,
    }


def open_bundled(request: Call) -> dict[str, Any]:
    """A network that comes with the package."""
    return bundled_model(request.shelf, request.part("bundled", str)).facts()


def drop_model(request: Call) -> dict[str, Any]:
    request.shelf.drop_model(request.path["id"])
    return {}


def drop_table(request: Call) -> dict[str, Any]:
    request.shelf.drop_table(request.path["id"])
    return {}


_SUFFIX = re.compile(r"(\.[A-Za-z0-9]{1,10}){1,2}$")


def checked_name(name: str) -> str:
    """The name of a file, and nothing that could be a place."""
    if not name or len(name) > 255 or name.startswith(".") or re.search(r"[/\\\x00-\x1f\x7f:]", name):
        raise SufficeError("an upload has the name of a file, without the place where it is")
    return name


async def receive(shelf: Shelf, name: str, chunks: AsyncIterable[bytes], declared: int, most: int) -> Path:
    """The file with what was sent; one that is too large, or broken off, is removed."""
    suffix = _SUFFIX.search(name)
    place = shelf.room / f"{uuid.uuid4().hex}{suffix[0].lower() if suffix else ''}"
    total = 0
    try:
        with place.open("wb") as file:
            async for chunk in chunks:
                total += len(chunk)
                if max(total, declared) > most:
                    raise TooMuch(
                        f"{name} is larger than {most:,} bytes, the most that is taken: give its path to suffice explore"
                    )
                file.write(chunk)
    except BaseException:
        place.unlink(missing_ok=True)
        raise
    return place


def hold_model(shelf: Shelf, place: Path, name: str) -> dict[str, Any]:
    """Hold the model of an upload, whose file is needed no longer."""
    try:
        return _refusal_of(place, name, lambda: read_model(shelf, place, name, name).facts())
    finally:
        place.unlink(missing_ok=True)


def hold_table(shelf: Shelf, place: Path, name: str) -> dict[str, Any]:
    """Hold the rows of an upload; its file goes with them."""
    try:
        return _refusal_of(place, name, lambda: read_table(shelf, place, name, name, upload=True).facts())
    except BaseException:
        place.unlink(missing_ok=True)
        raise


def _refusal_of(place: Path, name: str, hold: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What is held, or a refusal that calls the file by its own name."""
    try:
        return hold()
    except SufficeError as error:
        raise SufficeError(error.said.replace(str(place), name).replace(place.name, name)) from None
