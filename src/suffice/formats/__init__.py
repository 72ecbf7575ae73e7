"""Files of networks: one module per format, one registry by suffix."""

from suffice.formats.registry import read, write

__all__ = ["read", "write"]
