"""Files of models: a module for each format, or for some that are alike, one registry by suffix.

May use models and all below them. Start with `registry`; then `bif`, a format of text, and `json/model`, our own.
"""

from suffice.formats.registry import NAMES, TABLES, holds, load, networks, path_of, read, table, tables, writable, write

__all__ = ["NAMES", "TABLES", "holds", "load", "networks", "path_of", "read", "table", "tables", "writable", "write"]
