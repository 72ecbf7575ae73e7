"""Files of networks: one module per format, one registry by suffix."""

from suffice.formats.bundled import load
from suffice.formats.registry import SUFFIXES, read, write

__all__ = ["SUFFIXES", "load", "read", "write"]
