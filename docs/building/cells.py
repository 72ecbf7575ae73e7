"""A page as cells: text and code, in order. Tests run them, notebooks are made of them; Sphinx is not needed.

A page is MyST Markdown. Three kinds of fenced blocks are code:

- `{code-cell} python`: runs when the site is built, which shows what it gives, and in the tests;
- `python`: runs in the tests; the site shows the code alone;
- `pycon`: a session whose answers the tests compare (the README, which has no build).

A cell may begin with lines `:tags: [raises-exception]` and `:alt: what its picture shows`.
"""

from __future__ import annotations

import ast
import doctest
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

FENCE = re.compile(
    r"^(?P<fence>`{3,})(?P<kind>\{code-cell\} python|python|pycon)[ \t]*\n(?P<body>.*?)^(?P=fence)[ \t]*$", re.M | re.S
)
OPTION = re.compile(r":([\w-]+):[ \t]*(.*)\n")
HEADER = re.compile(r"\A---\n.*?^---\n", re.M | re.S)


@dataclass(frozen=True)
class Cell:
    """A piece of a page: text, or code of some kind with its options, and the line where it begins."""

    kind: str
    source: str
    line: int
    options: dict[str, str] = field(default_factory=dict)

    @property
    def tags(self) -> list[str]:
        return re.findall(r"[\w-]+", self.options.get("tags", ""))


def cells_of(page: str) -> list[Cell]:
    """The cells of a page, in order, without its header.

    >>> cells_of("Text.\\n\\n```{code-cell} python\\n:tags: [hide-input]\\n1 + 1\\n```\\n")[1].tags
    ['hide-input']
    """
    return [cell for cell in _pieces(page) if cell.source.strip()]


def code_of(page: str) -> list[Cell]:
    """The cells of a page that run."""
    return [cell for cell in cells_of(page) if cell.kind != "text"]


def _pieces(page: str) -> Iterator[Cell]:
    header = HEADER.match(page)
    end = header.end() if header else 0
    for block in FENCE.finditer(page, end):
        yield Cell("text", page[end : block.start()], _line(page, end))
        body, options = block["body"], {}
        if block["kind"].startswith("{"):
            while option := OPTION.match(body):
                options[option[1]] = option[2].strip()
                body = body[option.end() :]
        start = block.end("body") - len(body)
        yield Cell("pycon" if block["kind"] == "pycon" else "python", body, _line(page, start), options)
        end = block.end()
    yield Cell("text", page[end:], _line(page, end))


def _line(page: str, at: int) -> int:
    return page.count("\n", 0, at) + 1


def run(page: str, name: str) -> dict[str, Any]:
    """Run the code of a page in one namespace, which is returned; what a cell ends with is shown as a notebook would show it."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for cell in code_of(page):
        if cell.kind == "pycon":
            _compare(cell, namespace, name)
        elif "raises-exception" in cell.tags:
            _refused(cell, namespace, name)
        else:
            _run(cell, namespace, name)
        _close_plots()
    return namespace


def _close_plots() -> None:
    """A notebook closes the plots of a cell when it has shown them."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")


def _run(cell: Cell, namespace: dict[str, Any], name: str) -> None:
    tree = ast.parse(cell.source, name)
    ast.increment_lineno(tree, cell.line - 1)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), namespace)
    if isinstance(last, ast.Expr):
        _show(eval(compile(ast.Expression(last.value), name, "eval"), namespace))


def _show(value: Any) -> None:
    repr(value)
    for way in ("_repr_mimebundle_", "_repr_html_", "_repr_svg_"):
        if not isinstance(value, type) and hasattr(value, way):
            getattr(value, way)()


def _refused(cell: Cell, namespace: dict[str, Any], name: str) -> None:
    try:
        _run(cell, namespace, name)
    except Exception:
        return
    raise AssertionError(f"{name}:{cell.line}: the cell is tagged raises-exception, and raises none")


def _compare(cell: Cell, namespace: dict[str, Any], name: str) -> None:
    test = doctest.DocTestParser().get_doctest(cell.source, namespace, name, name, cell.line)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=said.append, clear_globs=False)
    assert not said, "".join(said)
    namespace.update(test.globs)
