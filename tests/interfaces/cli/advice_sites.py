"""Where messages give a way out: every text of the sources that has a `Remedy` in it, as a pattern of what it says."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from suffice.errors import remedies
from suffice.errors.remedies import OPEN, Remedy
from tests.syntax import SOURCES, sources, tree_of

MAKERS = {name for name, thing in vars(remedies).items() if callable(thing) and name not in ("in_python", "in_options")}


@dataclass(frozen=True)
class Site:
    """A text of a file: its words with … where something is filled in, and the pattern of what it may say."""

    file: str
    words: str
    pattern: re.Pattern[str]

    def __str__(self) -> str:
        return f"{self.file}: {self.words}"


def sites() -> list[Site]:
    return [site for path in sources() if path.name != "remedies.py" for site in _sites_of(path)]


def _sites_of(path: Path) -> Iterator[Site]:
    if "remedies" not in path.read_text("utf-8"):
        return
    tree, file = tree_of(path), path.relative_to(SOURCES).as_posix()
    known = _module_remedies(file) | {
        f.name for f in _functions(tree) if f.returns is not None and "Remedy" in ast.unparse(f.returns)
    }
    within = {id(part) for f in ast.walk(tree) if isinstance(f, ast.JoinedStr) for part in ast.walk(f) if part is not f}
    for scope in [tree, *_functions(tree)]:
        local = known | {t.id for a in _assigned(scope) if _makes(a.value, known) for t in ast.walk(a.targets[0]) if _is_name(t)}
        for text in _own_texts(scope):
            if id(text) not in within and any(_makes(f.value, local) for f in _fields(text)):
                yield Site(file, _words(text), re.compile(_pattern(text), re.DOTALL))


def _module_remedies(file: str) -> set[str]:
    """Names of a module that are ways out, or texts with such in them."""
    name = ".".join(["suffice", *file.removesuffix(".py").removesuffix("/__init__").split("/")])
    found = vars(importlib.import_module(name if name != "suffice.__init__" else "suffice"))
    return {n for n, value in found.items() if isinstance(value, Remedy) or (isinstance(value, str) and OPEN in value)}


def _functions(tree: ast.AST) -> list[Any]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]


def _is_name(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name)


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """The parts of a scope, without those of functions in it."""
    waiting = list(ast.iter_child_nodes(scope))
    for node in waiting:  # which grows on the way
        yield node
        if not isinstance(node, ast.FunctionDef):
            waiting += ast.iter_child_nodes(node)


def _assigned(scope: ast.AST) -> list[ast.Assign]:
    return [n for n in _own(scope) if isinstance(n, ast.Assign)]


def _own_texts(scope: ast.AST) -> list[ast.JoinedStr]:
    return [n for n in _own(scope) if isinstance(n, ast.JoinedStr)]


def _fields(text: ast.JoinedStr) -> list[ast.FormattedValue]:
    return [n for n in ast.walk(text) if isinstance(n, ast.FormattedValue)]


def _makes(value: ast.AST | None, known: set[str]) -> bool:
    """Whether a way out is made or named here, and not within another text."""
    if value is None or isinstance(value, ast.JoinedStr):
        return False
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in MAKERS | known
    if isinstance(value, ast.Name):
        return value.id in known
    return isinstance(value, ast.IfExp) and (_makes(value.body, known) or _makes(value.orelse, known))


def _words(text: ast.JoinedStr) -> str:
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in text.values)


def _pattern(text: ast.JoinedStr) -> str:
    return "".join(re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*" for part in text.values)
