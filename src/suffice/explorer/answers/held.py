"""What is held, and what comes and goes."""

from __future__ import annotations

from typing import Any

from suffice.basis.version import VERSION
from suffice.explorer.requests.calls import Call
from suffice.explorer.shelf import bundled_model

UPLOAD_BYTES = 2**30
"""No file that is uploaded is larger."""


def state(request: Call) -> dict[str, Any]:
    """All that is held."""
    from suffice.formats.bundled import NAMES

    shelf = request.shelf
    return {
        "version": VERSION,
        "models": [model.facts() for model in shelf.models],
        "tables": [table.facts() for table in shelf.tables],
        "bundled": list(NAMES),
        "job": None if shelf.job is None else shelf.job.facts(),
        "limits": {"upload_bytes": UPLOAD_BYTES},
        "open": shelf.open,
    }


def open_bundled(request: Call) -> dict[str, Any]:
    """A network that comes with the package."""
    return bundled_model(request.shelf, request.given("bundled", str)).facts()


def drop_model(request: Call) -> dict[str, Any]:
    request.shelf.drop_model(request.path["id"])
    return {}


def drop_table(request: Call) -> dict[str, Any]:
    request.shelf.drop_table(request.path["id"])
    return {}
