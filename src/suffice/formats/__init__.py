"""Files of networks: one module per format, one registry by suffix."""

from suffice.formats.registry import NAMES, SUFFIXES, holds, load, read, writable, write

__all__ = ["NAMES", "SUFFIXES", "holds", "load", "read", "writable", "write"]
