"""Pages for those who come from another program: tables with a task, their line, our line, and what differs.

Lines of a table run one after the other, as a page's cells do, each side in a namespace of its own. Code is what stands between
backticks. The last column begins with a mark: = where both give the same numbers, ≠ where they differ and the rest says why,
≈ where they may, from run to run, and none where there is nothing to compare. Blocks `py` are the other program's, which runs
in `benchmarks/coming_from.py` alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from building.cells import run

CODE = re.compile(r"`([^`]+)`")
COLUMNS = re.compile(r"(?<!\\)\|")
MARKS = ("=", "≠", "≈")
PEER = re.compile(r"^```py[ \t]*\n(.*?)^```[ \t]*$", re.M | re.S)


@dataclass(frozen=True)
class Task:
    """A row of such a table: what is to be done, how both do it, and what differs."""

    name: str
    theirs: str
    ours: str
    differs: str
    line: int

    @property
    def mark(self) -> str:
        return self.differs[:1] if self.differs[:1] in MARKS else ""


def tasks(page: str) -> Iterator[Task]:
    """The rows of a page's tables of four columns, heads left out.

    >>> page = "| task | R | ours | differs |\\n|---|---|---|---|\\n| add | `1 + 1` | `2` | = |\\n"
    >>> [(t.theirs, t.ours, t.mark) for t in tasks(page)]
    [('1 + 1', '2', '=')]
    """
    head = True
    for number, line in enumerate(page.splitlines(), 1):
        columns = [column.strip() for column in COLUMNS.split(line)[1:-1]] if line.startswith("|") else []
        if len(columns) != 4:
            head = True
        elif set("".join(columns)) <= set("-:"):
            head = False
        elif not head:
            yield Task(columns[0], _code(columns[1]), _code(columns[2]), columns[3], number)


def peer_blocks(page: str) -> Iterator[str]:
    """What the other program runs before its lines."""
    yield from PEER.findall(page)


def run_ours(page: str, name: str) -> dict[str, Any]:
    """Run a page's cells, then our line of each task; the namespace that they leave."""
    namespace = run(page, name)
    for task in tasks(page):
        value_of(task.ours, namespace, f"{name}:{task.line}")
    return namespace


def value_of(code: str, namespace: dict[str, Any], name: str) -> Any:
    """Run lines of code; what the last of them is worth, None of a statement."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), namespace)
    return eval(compile(ast.Expression(last.value), name, "eval"), namespace) if isinstance(last, ast.Expr) else None


def _code(column: str) -> str:
    return "\n".join(piece.replace("\\|", "|") for piece in CODE.findall(column))
