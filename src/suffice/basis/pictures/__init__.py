"""Pictures: names, edges, widths and bars in, a `Picture` out, which knows no model.

It may use errors only. Start reading in `picture`; `arrangement` says where things go, `shapes` what is drawn there, `svg` and
`picture` draw the same shapes, the one as text, the other by matplotlib; `Pictured` is for values that a notebook shows so.
"""

from suffice.basis.pictures.picture import Focus, Picture, Pictured, PicturedTable
from suffice.basis.pictures.scene import Bar, Curve, PictureEdge, PictureNode

__all__ = ["Bar", "Curve", "Focus", "Picture", "PictureEdge", "PictureNode", "Pictured", "PicturedTable"]
