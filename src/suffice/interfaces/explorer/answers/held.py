"""What is held, what comes and goes, and what can be taken away: models, pictures, reports. Files that the page sends are
streamed to a file of ours, no larger than the limit, and removed when they are not needed."""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncIterable, Callable
from pathlib import Path
from typing import Any

from suffice.basis import VERSION
from suffice.basis.registry import words
from suffice.errors import SufficeError
from suffice.interfaces.explorer.calls import AskedNetwork, Call, FileAnswer
from suffice.interfaces.explorer.shelf import HeldModel, Shelf, TooMuch, bundled_model, read_model, read_table

UPLOAD_BYTES = 2**30
"""No file that is uploaded is larger."""

KINDS = {"json": "application/json", "xml": "application/xml", "xmlbif": "application/xml", "xdsl": "application/xml"}
_SUFFIX = re.compile(r"(\.[A-Za-z0-9]{1,10}){1,2}$")


def state(request: Call) -> dict[str, Any]:
    """All that is held."""
    from suffice.formats.registry import NAMES

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


def hold(shelf: Shelf, place: Path, name: str, what: str) -> dict[str, Any]:
    """Hold the model of an upload, whose file is needed no longer, or the rows, with which their file goes; a refusal calls the
    file by its own name."""
    try:
        held = read_model(shelf, place, name, name) if what == "models" else read_table(shelf, place, name, name, upload=True)
        told = held.facts()
    except BaseException as error:
        place.unlink(missing_ok=True)
        if isinstance(error, SufficeError):
            raise SufficeError(error.said.replace(str(place), name).replace(place.name, name)) from None
        raise
    if what == "models":
        place.unlink(missing_ok=True)
    return told


def file_name(model: HeldModel, suffix: str) -> str:
    """A name for a file that any system takes."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", model.name.partition(".")[0]).strip("-")[:60]
    return f"{stem or 'model'}.{suffix}"


def export(request: Call) -> FileAnswer:
    """The model in a format."""
    from suffice.formats.registry import write

    model, word = request.model, request.text("format", "json")
    if word not in words("formats"):
        raise SufficeError(f"the format {word!r} is not known; known are {', '.join(words('formats'))}")
    data = _bytes_written(request, word, lambda place: write(model.network, place))
    return FileAnswer(file_name(model, word), KINDS.get(word, "text/plain"), data)


def _bytes_written(request: Call, suffix: str, write: Callable[[Path], Any]) -> bytes:
    """What is written to a file, which is removed; refusals do not say where it was."""
    place = request.shelf.room / f"{uuid.uuid4().hex}.{suffix}"
    try:
        write(place)
        return place.read_bytes()
    except SufficeError as error:
        raise SufficeError(error.said.replace(f"{place}: ", "")) from None
    finally:
        place.unlink(missing_ok=True)


def picture(request: Call) -> FileAnswer:
    """What the page shows, as a picture of the library."""
    asked, word = AskedNetwork.of(request), request.part("format", str, "svg")
    if word not in ("svg", "png"):
        raise SufficeError(f"a picture is svg or png, not {word!r}")
    focus, steps = request.part("focus", str, None), request.part("steps", int, 1)
    how: dict[str, Any] = {"do": dict(asked.do) or None, "interval": None} if asked.model.directed else {}
    drawn = asked.model.network.picture(dict(asked.given) or None, **how, focus=focus, steps=steps)
    if word == "svg":
        return FileAnswer(file_name(asked.model, "svg"), "image/svg+xml", drawn.svg().encode())
    return FileAnswer(file_name(asked.model, word), "image/png", _bytes_written(request, word, drawn.save))


def report(request: Call) -> FileAnswer:
    """All that is known of a model, in one file that needs no explorer."""
    from suffice.interfaces.reports.document import report_html

    model, chosen = request.model, request.part("table", str, None)
    table = None if chosen is None else request.shelf.table(chosen)
    html = report_html(model.network, None if table is None else table.data, title=model.name)
    return FileAnswer(file_name(model, "html"), "text/html; charset=utf-8", html.encode())
