"""Pictures that cells give have the alternative text that `:alt:` of the cell says."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

logger = logging.getLogger(__name__)
LACKS = "a picture has no alternative text: begin its cell with a line :alt: text, or write ![text](file)"


class AlternativeTexts(SphinxPostTransform):
    """Every image has an alternative text: its own, or that of its cell."""

    default_priority = 800

    def run(self, **kwargs: Any) -> None:
        for image in self.document.findall(nodes.image):
            if not image.get("alt"):
                image["alt"] = _of_cell(image) or ""
            if not image["alt"]:
                logger.warning(LACKS, location=image, type="alt")


def _of_cell(node: nodes.Node | None) -> str | None:
    while node is not None:
        if isinstance(node, nodes.container) and "cell_metadata" in node:
            return node["cell_metadata"].get("alt")
        node = node.parent
    return None


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_post_transform(AlternativeTexts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
