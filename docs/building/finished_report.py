"""The report that the gallery leads to is made with the site, by the lines of its page, and lies beside it."""

from __future__ import annotations

import warnings
from contextlib import chdir
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

from sphinx.application import Sphinx

from building.cells import run
from suffice import SufficeNote

PAGE = "gallery/report.md"


def make_report(app: Sphinx, failed: Exception | None) -> None:
    source, target = Path(app.srcdir, PAGE), Path(app.outdir, PAGE).parent
    if failed or app.builder.format != "html" or not target.is_dir():
        return
    with TemporaryDirectory() as place, chdir(place), warnings.catch_warnings():
        warnings.simplefilter("ignore", SufficeNote)  # the page itself shows the notes of its cells
        run(source.read_text("utf-8"), PAGE)
        for made in Path(place).glob("*.html"):
            copyfile(made, target / made.name)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", make_report)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
