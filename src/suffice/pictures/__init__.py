"""Pictures: names, edges, widths and bars in, a `Picture` out, which knows no model.

It may use errors only. Start reading in `picture`; `layout` says where things go, `shapes` what is drawn there, `svg` and
`drawing` draw the same shapes, the one as text, the other by matplotlib.
"""

from suffice.pictures.picture import Picture
from suffice.pictures.scene import Bar, PictureEdge, PictureNode

__all__ = ["Bar", "Picture", "PictureEdge", "PictureNode"]
