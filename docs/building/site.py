"""What the pages of the site have beside their text: links of names, notebooks to download, formulas without another host."""

from __future__ import annotations

import json
import re
from importlib.metadata import distribution
from pathlib import Path
from shutil import copyfile
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

from building.cells import cells_of, code_of
from building.links import target_of, unknown_names

logger = logging.getLogger(__name__)
FORMULAS = "tex-svg.js"


class NameLinks(SphinxPostTransform):
    """Pieces of code in the text that are names of the library lead to their entries."""

    default_priority = 700

    def run(self, **kwargs: Any) -> None:
        objects = self.env.domains["py"].objects
        for literal in list(self.document.findall(nodes.literal)):
            full = target_of(literal.astext())
            if full not in objects or isinstance(literal.parent, (nodes.reference, nodes.title)):
                continue
            entry = objects[full]
            literal.replace_self(
                make_refnode(
                    self.app.builder, self.env.current_document.docname, entry.docname, entry.node_id, [literal.deepcopy()]
                )
            )


def check_names(app: Sphinx, docname: str, source: list[str]) -> None:
    for line, name in unknown_names(source[0]):
        logger.warning("there is no %s", name, location=(docname, line), type="names")


def notebook(page: str) -> dict[str, Any]:
    """A page as a notebook to be run: its text and code, without what came of it."""
    cells = []
    for number, cell in enumerate(cells_of(page)):
        about: dict[str, Any] = {
            "id": f"cell-{number}",
            "metadata": {},
            "source": cell.source.strip("\n").splitlines(keepends=True),
        }
        if cell.kind == "text":
            cells.append({"cell_type": "markdown", **about})
        else:
            cells.append({"cell_type": "code", "execution_count": None, "outputs": [], **about})
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": cells}


def write_notebooks(app: Sphinx, failed: Exception | None) -> None:
    if failed or app.builder.format != "html":
        return
    for docname in app.env.found_docs:
        page = Path(app.env.doc2path(docname)).read_text("utf-8")
        if code_of(page):
            path = Path(app.outdir, f"{docname}.ipynb")
            path.write_text(json.dumps(notebook(page), indent=1, ensure_ascii=False) + "\n", "utf-8")


def offer_notebook(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    page = Path(app.env.doc2path(pagename)) if pagename in app.env.found_docs else None
    context["notebook"] = f"{pagename.split('/')[-1]}.ipynb" if page and code_of(page.read_text("utf-8")) else None


def copy_formulas(app: Sphinx) -> None:
    """The one file that draws formulas, from the package that has it."""
    if app.builder.format != "html":
        return
    files = distribution("sphinx-mathjax-offline").files or []
    source = next(Path(f.locate()) for f in files if f.name == FORMULAS)
    target = Path(app.outdir, "_static", FORMULAS)
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        copyfile(source, target)


def check_title(app: Sphinx, doctree: nodes.document) -> None:
    text = next(iter(doctree.findall(nodes.title)), None)
    if text is None or re.search(r"[a-z]", text.astext(), re.I) is None:
        logger.warning("the page has no title", location=doctree, type="title")


def give_levels(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Headings of the list of pages say of which level they are, as those who hear them need; Sphinx leaves that out."""
    for key, value in context.items():
        if isinstance(value, str) and 'role="heading">' in value:
            context[key] = value.replace('role="heading">', 'role="heading" aria-level="2">')


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("library", "", "env")
    app.add_post_transform(NameLinks)
    app.connect("source-read", check_names)
    app.connect("doctree-read", check_title)
    app.connect("builder-inited", copy_formulas)
    app.connect("html-page-context", offer_notebook)
    app.connect("html-page-context", give_levels, priority=900)
    app.connect("build-finished", write_notebooks)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
