"""The schema: what each column is, as a mapping; and printed, as a report with counts, examples and doubts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from suffice.basis.output.display import OneTable
from suffice.basis.variables import Finite, Variable
from suffice.engines.engine import Array, Block, Floats, Seen, Step, is_missing
from suffice.errors import listing

SHOWN = 6
"""States of a column that the report shows, with their counts."""

LONGEST = 24
"""Letters of a state that the report shows."""


@dataclass(frozen=True)
class NumberSummary:
    """How many numbers there are, their sum, and the least and the largest; they add."""

    n: int
    total: float
    least: float
    most: float

    @classmethod
    def of(cls, numbers: Floats) -> NumberSummary:
        """Those of some cells."""
        x = numbers[~np.isnan(numbers)]
        with np.errstate(over="ignore"):
            return cls(len(x), float(x.sum()), float(x.min()), float(x.max())) if len(x) else cls(0, 0.0, np.inf, -np.inf)

    def __add__(self, other: NumberSummary) -> NumberSummary:
        return NumberSummary(self.n + other.n, self.total + other.total, min(self.least, other.least), max(self.most, other.most))


@dataclass(frozen=True)
class Summarise(Step[dict[str, "Array | NumberSummary"]]):
    """The number of rows in each state of finite columns, and the extremes of others. Weights do not count here."""

    sizes: Mapping[str, int | None]

    def of(self, block: Block) -> dict[str, Array | NumberSummary]:
        found: dict[str, Array | NumberSummary] = {}
        for name, n in self.sizes.items():
            cells = block.columns[name]
            found[name] = NumberSummary.of(cells) if n is None else np.bincount(cells[~is_missing(cells)], minlength=n)[:n]
        return found


Summaries = Mapping[str, "Array | NumberSummary"]


class Schema(OneTable, Mapping[str, Variable]):
    """The variables of some data by name. Printed it is a report: what each column is, its values with their counts, its missing
    cells, and what may have been meant otherwise.

    >>> from suffice import scan
    >>> print(scan({"smoke": ["no", "yes", "yes", None], "age": [17.5, 64.0, 30.25, 41.0]}).schema)
    4 rows
    <BLANKLINE>
    column  kind    values                  missing
    ──────  ──────  ──────────────────────  ───────
    smoke   Finite  no 1, yes 2             1
    age     Real    17.5 to 64, mean 38.19
    """

    def __init__(
        self,
        variables: Mapping[str, Variable],
        missing: Mapping[str, int] | None = None,
        look: Callable[[], tuple[int, Mapping[str, Seen], Summaries]] | None = None,
    ) -> None:
        self._variables, self._missing, self._look = dict(variables), dict(missing or {}), look

    def __getitem__(self, name: str) -> Variable:
        return self._variables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def __repr__(self) -> str:
        n_rows = None if self._look is None else self._look()[0]
        headline = "" if n_rows is None else f"{n_rows:,} {'row' if n_rows == 1 else 'rows'}\n\n"
        return headline + super().__repr__()

    def _lines(self) -> Iterator[tuple[str, Variable, int, list[str], Array | NumberSummary | None]]:
        """Each column, what it is, with its missing cells, doubts and summary, as far as they are known."""
        _, seen, summaries = (None, {}, {}) if self._look is None else self._look()
        for name, variable in self._variables.items():
            missing = seen[name].n_missing if name in seen else self._missing.get(name, 0)
            doubts = [d.short for d in seen[name].doubts] if name in seen else []
            yield name, variable, missing, doubts, summaries.get(name)

    def _table(self) -> tuple[list[str], list[list[object]]]:
        rows: list[list[object]] = [
            [name, type(v).__name__, _values(v, summary), f"{missing:,}" if missing else "", "; ".join(doubts)]
            for name, v, missing, doubts, summary in self._lines()
        ]
        header = ["column", "kind", "values", "missing", "doubt"]
        if any(row[-1] for row in rows):
            return header, rows
        return header[:-1], [row[:-1] for row in rows]

    def records(self) -> list[dict[str, object]]:
        """The report for a program: a record for each column.

        >>> from suffice import scan
        >>> scan({"smoke": ["no", "yes", "yes"]}).schema.records()
        [{'column': 'smoke', 'kind': 'Finite', 'missing': 0, 'doubts': [], 'states': {'no': 1, 'yes': 2}}]
        """
        return [
            {"column": name, "kind": type(v).__name__, "missing": missing, "doubts": doubts, **_record(v, summary)}
            for name, v, missing, doubts, summary in self._lines()
        ]


def _values(variable: Variable, summary: Array | NumberSummary | None) -> str:
    if not isinstance(variable, Finite):
        if not isinstance(summary, NumberSummary) or not summary.n:
            return ""
        return f"{summary.least:.4g} to {summary.most:.4g}, mean {summary.total / summary.n:.4g}"
    short = (s if len(s) <= LONGEST else s[: LONGEST - 1] + "…" for s in variable.states)
    # In quotes where blanks around a state would not be seen.
    states = [s if s == s.strip() and s.isprintable() else repr(s) for s in short]
    if not isinstance(summary, np.ndarray):
        return listing(states, SHOWN, "str")
    pairs = [f"{state} {int(n):,}" for state, n in zip(states, summary, strict=True)]
    if len(states) <= SHOWN:
        return ", ".join(pairs)
    most = np.argsort(-summary, kind="stable")[: SHOWN // 2]
    return f"{len(states):,} states: " + ", ".join(pairs[i] for i in most) + ", …"


def _record(variable: Variable, summary: Array | NumberSummary | None) -> dict[str, object]:
    if isinstance(variable, Finite):
        counts = summary.tolist() if isinstance(summary, np.ndarray) else [None] * variable.n_states
        return {"states": dict(zip(variable.states, counts, strict=True))}
    if not isinstance(summary, NumberSummary) or not summary.n:
        return {}
    return {"least": summary.least, "largest": summary.most, "mean": summary.total / summary.n}
