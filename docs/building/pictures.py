"""Pictures of the library become part of their page, so that it can colour them; every picture has an alternative text."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

logger = logging.getLogger(__name__)
LACKS = "a picture has no alternative text: begin its cell with a line :alt: text, or write ![text](file)"
OURS = 'class="suffice-picture"'


class Pictures(SphinxPostTransform):
    """SVG of the library is put into the page; other images get the alternative text of their cell."""

    default_priority = 250

    def run(self, **kwargs: Any) -> None:
        for image in list(self.document.findall(nodes.image)):
            alt = image.get("alt") or _of_cell(image)
            path = Path(self.env.srcdir) / image["uri"]
            svg = path.read_text("utf-8") if path.suffix == ".svg" and path.exists() else ""
            if OURS in svg:
                image.replace_self(nodes.raw("", figure(svg, alt), format="html"))
            elif alt:
                image["alt"] = alt
            else:
                logger.warning(LACKS, location=image, type="alt")


def figure(svg: str, alt: str | None = None) -> str:
    """A picture in a page, whose title is its alternative text if it has one."""
    start = svg[svg.index("<svg") :]
    if alt:
        start = re.sub(r"<title>.*?</title>", lambda _: f"<title>{html.escape(alt)}</title>", start, count=1, flags=re.S)
    return f'<div class="picture" tabindex="0">{start}</div>'


def _of_cell(node: nodes.Node | None) -> str | None:
    while node is not None:
        if isinstance(node, nodes.container) and "cell_metadata" in node:
            text: str | None = node["cell_metadata"].get("alt")
            return text
        node = node.parent
    return None


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_post_transform(Pictures)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
