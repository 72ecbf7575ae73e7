"""What can be taken away: models, pictures, reports."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from suffice.errors import SufficeError
from suffice.explorer.requests.calls import AskedNetwork, Call, FileAnswer
from suffice.explorer.shelf import HeldModel
from suffice.registry import words

KINDS = {"json": "application/json", "xml": "application/xml", "xmlbif": "application/xml", "xdsl": "application/xml"}


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
    from suffice.reports.document import report_html

    model, chosen = request.model, request.part("table", str, None)
    table = None if chosen is None else request.shelf.table(chosen)
    html = report_html(model.network, None if table is None else table.data, title=model.name)
    return FileAnswer(file_name(model, "html"), "text/html; charset=utf-8", html.encode())
