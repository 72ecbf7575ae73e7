"""Files of networks: one module per format, one registry by suffix."""

from suffice.formats.bundled import NAMES, load
from suffice.formats.registry import SUFFIXES, holds, read, writable, write

__all__ = ["NAMES", "SUFFIXES", "holds", "load", "read", "writable", "write"]
