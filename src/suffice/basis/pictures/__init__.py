"""Pictures: names, edges, widths and bars in, a `Picture` out, which knows no model.

It may use errors and `output`. Start in `picture`; `arrangement` says where things go, `shapes` what is drawn there, as SVG by
itself, and by matplotlib in `picture`; `Pictured` is for values that a notebook shows so.
"""

from suffice.basis.pictures.picture import Focus, Picture, Pictured, PicturedTable
from suffice.basis.pictures.scene import Bar, Curve, PictureEdge, PictureNode

__all__ = ["Bar", "Curve", "Focus", "Picture", "PictureEdge", "PictureNode", "Pictured", "PicturedTable"]
