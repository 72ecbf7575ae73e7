"""The sources of the package as syntax trees: several suites look at them, and each file is parsed once."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import suffice

SOURCES = Path(suffice.__file__).parent


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file."""
    return tuple(ast.walk(tree_of(path)))


def sources() -> list[Path]:
    return sorted(SOURCES.rglob("*.py"))
