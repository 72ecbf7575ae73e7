"""The recorded runs of `make bench` as Markdown: a plot, a table for each script, and all that it printed. Sphinx is not needed.

Tables are made of lines of the form `work: 0.12 s  (target 0.2 s: met); peer 1.2 s = 10.0x`. What stands in a block
`{earlier-benchmarks}` is of earlier runs, kept by hand; a row whose script has a record by now is not shown.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from building.ratio_plot import ratio_plot

DOCS = Path(__file__).parents[1]
FILE = DOCS / "last_benchmarks.json"
NONE = "No run is recorded in this checkout: `make bench` writes one."
TIME = r"[\d.,]+(?:e[+-]?\d+)? (?:s|ms|ns)\b"
FIGURE = re.compile(rf"\s*(?P<work>\S.*?): (?P<rest>{TIME}.*)")
WANTED = r"\((?:wanted|target) (?P<aim>[^)]*)\)"
PEER = re.compile(rf"[;,] (?P<name>[A-Za-z][^;=:]*?) (?P<time>{TIME}) = (?P<ratio>[\d.,]+)x(?: {WANTED})?")
AIM = re.compile(WANTED)
STOPPED = ", stopped after"
SPECIAL = re.compile(r"([\\`*_{}\[\]<>|$~])")
CALL = re.compile(r"([\w.]+\(.*\))")
UNIT = re.compile(r"(?<=\d) (?=(?:s|ms|ns)\b)")
SCRIPT = re.compile(r"`(\w+\.py)([^`]*)`\s*\|?$")
PROGRAMS = ("causal-learn", "crfsuite", "DuckDB", "dynamax", "hmmlearn", "pgmpy", "pyAgrum", "scikit-learn", "statsmodels")


@dataclass(frozen=True)
class Peer:
    """Another program at the same work: its time, and how many times as long that is; at least so, if it was stopped."""

    name: str
    time: str
    ratio: float
    stopped: bool

    @property
    def program(self) -> str | None:
        """The program, however it was run; None for another way of our own."""
        return next((p for p in PROGRAMS if _letters(self.name).startswith(_letters(p))), None)

    @property
    def called(self) -> str:
        """Its name in words: scripts write `scikit_learn_with_one_thread`.

        >>> Peer("scikit_learn_with_one_thread", "1 s", 2.0, False).called
        'scikit-learn with one thread'
        """
        start = self.program or ""
        return start + self.name[len(start) :].replace("_", " ")

    def __str__(self) -> str:
        over = "over " if self.stopped else ""
        return f"{self.called} {over}{self.time}: {over}{self.ratio:,.4g}×"


def _letters(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


@dataclass(frozen=True)
class Figure:
    """A line that a script printed: the work, our time, what it should be, and the other programs."""

    work: str
    ours: str
    aim: str
    peers: tuple[Peer, ...]


def figures(output: list[str]) -> list[Figure]:
    """The lines of an output that set a time beside an aim or beside another program's.

    >>> [f] = figures(["fit: 0.5 s  (target 1 s: met); pgmpy 5 s = 10.0x", "so many rows"])
    >>> f.work, f.ours, f.aim, f.peers[0].name, f.peers[0].ratio
    ('fit', '0.5 s', '1 s: met', 'pgmpy', 10.0)
    """
    found = [_figure(line["work"], line["rest"]) for line in map(FIGURE.fullmatch, output) if line]
    return [f for f in found if f.aim or f.peers]


def _figure(work: str, rest: str) -> Figure:
    others = list(PEER.finditer(rest))
    own = rest[: others[0].start()] if others else rest
    aims = [*AIM.findall(own), *(m["aim"] for m in others if m["aim"])]
    peers = tuple(
        Peer(m["name"].removesuffix(STOPPED), m["time"], float(m["ratio"].replace(",", "")), m["name"].endswith(STOPPED))
        for m in others
    )
    return Figure(work, re.split(r"\s*[(;]", own)[0], "; ".join(aims), peers)


def recorded() -> dict[str, Any]:
    """What docs/last_benchmarks.json says; nothing where there is none."""
    return json.loads(FILE.read_text("utf-8")) if FILE.exists() else {"scripts": {}}


def markdown(run: dict[str, Any]) -> Iterator[str]:
    """A recorded run as Markdown."""
    if not run["scripts"]:
        yield NONE
        return
    m = run["machine"]
    yield f"{run['day']}: {m['cores']} cores of {m['processor']}, {m['memory']}, {m['system']}, Python {m['python']}; "
    yield ", ".join(f"{name} {number}" for name, number in run["versions"].items()) + "."
    found = {script: figures(result["output"]) for script, result in run["scripts"].items()}
    peers = [(p, f.work) for each in found.values() for f in each for p in f.peers]
    yield from ("", *ratio_plot([(p.program, p.ratio, f"{work}; {p.called}") for p, work in peers if p.program]))
    for script, result in run["scripts"].items():
        load = f"at a load of {result['load']} on {m['cores']} cores" + (", busy" if result["load"] > m["cores"] else "")
        yield from ("", f"```{{rubric}} {script}", "```", "", f"{_about(script)} It took {result['seconds']:,.0f} s, {load}.", "")
        yield from _table(found[script])
        yield from ("", f"<details><summary>All that {script} printed</summary>", "")
        yield from ("```text", *result["output"], "```", "", "</details>")


def _about(script: str) -> str:
    """The first sentence of a script's docstring."""
    path = DOCS.parent / "benchmarks" / script
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) if path.exists() else None
    return re.split(r"(?<=\.)\s", " ".join((text or "").split()), maxsplit=1)[0]


def _table(found: list[Figure]) -> Iterator[str]:
    """A table of figures, without the columns in which nothing would stand."""
    columns = {
        "work": [_plain(f.work) for f in found],
        "Suffice": [_plain(f.ours) for f in found],
        "others, and how many times as long": ["; ".join(_plain(str(p)) for p in f.peers) for f in found],
        "aim": [_plain(f.aim) for f in found],
    }
    shown = {head: cells for head, cells in columns.items() if any(cells)}
    if shown:
        yield from (f"| {' | '.join(shown)} |", "|---" * len(shown) + "|")
    for row in zip(*shown.values(), strict=True):
        yield f"| {' | '.join(cell or '–' for cell in row)} |"


def _plain(text: str) -> str:
    """Text for a cell of a table: calls as code, numbers together with their units, and nothing else that Markdown would read."""
    pieces = CALL.split(UNIT.sub("\N{NO-BREAK SPACE}", text))
    return "".join(f"`{piece}`" if k % 2 else SPECIAL.sub(r"\\\1", piece) for k, piece in enumerate(pieces))


def unrecorded(lines: list[str], scripts: dict[str, Any]) -> list[str]:
    """The lines of a table, without the rows whose script, in the last column, has a record; nothing where no row is left.

    A script that is named with a section has a record of it if it printed that section's head, `-- section`.
    """
    rows = [line for line in lines[2:] if not _has_record(SCRIPT.search(line), scripts)]
    return [*lines[:2], *rows] if rows else []


def _has_record(named: re.Match[str] | None, scripts: dict[str, Any]) -> bool:
    if named is None or named[1] not in scripts:
        return False
    return all(f"-- {section}" in scripts[named[1]]["output"] for section in named[2].split())
