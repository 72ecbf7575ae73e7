"""A report on missing cells: how many, in which patterns, and whether which are missing has to do with what is observed."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from html import escape
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.basis.output.display import OneTable, html_table, text_table
from suffice.basis.variables import Finite, Real
from suffice.engines.data import Data
from suffice.engines.engine import Block, Step, is_missing
from suffice.engines.scan import scan
from suffice.errors import DataError, SufficeNote, listing, note, quantity
from suffice.recipes.missing.mcar import LEVEL, Dependence, McarTest, mcar_test
from suffice.recipes.missing.missing_cells import MAX_PATTERNS, MAX_STATES, Columns, LookAtMissing, MissingSummary
from suffice.statistics import Statistics

if TYPE_CHECKING:
    from suffice.basis.argument_types import RowsLike, VariablesLike, WeightsLike
    from suffice.graphs import Dag
    from suffice.graphs.directed import DagLike

SHOWN = 10
"""Patterns and dependences that are printed; all are kept."""
MANY_COLUMNS = 40
WIDTH = 120
"""Sentences are printed in lines of at most so many characters."""


class ColumnGaps(NamedTuple):
    """The missing cells of a column: their number, or the weight of their rows, and their share of all."""

    name: str
    missing: float
    share: float


class Pattern(NamedTuple):
    """The columns that are missing together, and no others: in how many rows (or what weight of them), and what share."""

    missing: tuple[str, ...]
    rows: float
    share: float


@one_blas_thread
def missingness(
    data: RowsLike,
    variables: VariablesLike | None = None,
    *,
    weights: WeightsLike | None = None,
    missing: Iterable[object] = (),
    integers: type[Real] | type[Finite] | None = None,
    memory_limit: int | str | None = None,
    warn: bool = False,
    compare: bool | DagLike = False,
) -> Missingness:
    """What is missing in data, in which patterns, and whether it may be missing completely at random (MCAR).

    The data, and what may be said of them, are as in `scan`; weights count. `warn=True` notes the report's warning, if it has
    one, so that it is seen where the report is not printed. One pass over the rows, on any engine.

    `compare=True` estimates each column by complete rows, by the cells that are there, and by EM, side by side (`.compared`):
    along the graph that structural EM finds, which takes its time, or along one that is given, `compare="smoke -> cough"`.

    >>> rows = {"smoke": ["no", "yes"] * 50, "cough": [None if i % 4 == 1 else "no" for i in range(100)]}
    >>> missingness(rows)
    Missingness: 100 rows of 2 columns, 25 of 200 cells missing (12.5 %)
    75 rows are complete: complete-case analysis would keep 75 % of the rows
    <BLANKLINE>
    column  missing  share
    ──────  ───────  ──────
    cough   25       25.0 %
    <BLANKLINE>
    missing together  rows  share
    ────────────────  ────  ──────
    nothing           75    75.0 %
    cough             25    25.0 %
    <BLANKLINE>
    MCAR: statistic 43.15, df 1, p = 5.064e-11 (1 pair of columns compared, ...)
    <BLANKLINE>
    whether it is missing  depends on  p          strength
    ─────────────────────  ──────────  ─────────  ────────
    cough                  smoke       5.064e-11  0.5774
    <BLANKLINE>
    warning: which cells are missing depends on observed values (cough on smoke): complete-case analysis would in general ...
    """
    if isinstance(data, Statistics):
        raise DataError("a report on missing cells needs rows, and statistics have none; give the data itself")
    rows = scan(data, variables, weights=weights, missing=missing, integers=integers, memory_limit=memory_limit)
    columns = Columns.of(rows)
    found = rows.fold(LookAtMissing(columns), what="looking at missing cells")
    report = _report(rows, columns, found)
    if compare is not False and compare is not None:
        report = replace(report, compared=_compare_cases(rows, columns, found, compare))
    if warn and report.warning:
        note(report.warning)
    return report


class CaseEstimate(NamedTuple):
    """A share of a state, or a mean or standard deviation of numbers, estimated in three ways; NaN where no row is complete.

    Complete cases are right if cells are missing completely at random, available cases of a column if its own are, and EM if
    whether a cell is missing depends on what its row shows and the graph has it. Where they differ, the first two are doubtful.
    """

    column: str
    what: str
    complete: float
    available: float
    em: float


@dataclass(frozen=True, eq=False, repr=False)
class CaseEstimates(OneTable):
    """The result of `missingness(..., compare=True)`: all estimates, and the graph along which EM filled the gaps.

    >>> from suffice import missingness
    >>> rows = {"a": ["x"] * 6 + ["y"] * 6, "b": ["u"] * 4 + [None] * 2 + ["u"] + ["v"] * 3 + [None] * 2}
    >>> found = missingness(rows, compare="a -> b").compared.rows[2]
    >>> found.column, found.what, found.complete, found.available, round(found.em, 4)
    ('b', 'u', 0.625, 0.625, 0.625)
    """

    dag: Dag
    rows: tuple[CaseEstimate, ...]

    def to_frame(self) -> Any:
        """One row per estimate."""
        from suffice.families.protocol.family import frame

        return frame({name: [getattr(row, name) for row in self.rows] for name in CaseEstimate._fields})

    def to_dict(self) -> dict[str, Any]:
        """The same for JSON, None for NaN."""
        rows = [{k: None if x != x else x for k, x in row._asdict().items()} for row in self.rows]
        return {"graph": str(self.dag), "estimates": rows}

    def _table(self) -> tuple[list[str], list[list[object]]]:
        header = ["column", "what", "complete cases", "available cases", "EM"]
        return header, [list(row) for row in self.rows]


@dataclass(frozen=True, eq=False, repr=False)
class Missingness:
    """The result of `missingness`. Counts of rows are weights where the rows have weights.

    >>> report = missingness({"x": ["a", None, "b", "a"], "y": ["u", "v", "u", "u"]})
    >>> report.complete, report.columns[0].missing
    (3, 1)
    """

    n_rows: int
    weight: float
    """The weight of all rows: their number, where they have none."""
    columns: tuple[ColumnGaps, ...]
    """Every column, in the order of the data."""
    patterns: tuple[Pattern, ...]
    """The most frequent first; the pattern of complete rows is among them."""
    complete: float
    """The rows without a missing cell: what complete-case analysis would keep."""
    empty_rows: float
    """The rows without an observed cell."""
    empty_columns: tuple[str, ...]
    """The columns without an observed cell."""
    mcar: McarTest
    depends: tuple[Dependence, ...]
    """Pairs of columns that are dependent at the level 0.01, corrected for all pairs; the most telling first."""
    notes: tuple[str, ...] = ()
    """What was left out."""
    compared: CaseEstimates | None = None
    """Estimates by complete rows, by cells that are there, and by EM, if they were asked for."""

    @property
    def incomplete(self) -> float:
        """The rows with a missing cell."""
        return self.weight - self.complete

    @property
    def complete_share(self) -> float:
        return self.complete / self.weight if self.weight > 0 else 0.0

    @property
    def missing(self) -> float:
        """The missing cells of all columns."""
        return sum(c.missing for c in self.columns)

    @property
    def warning(self) -> str | None:
        """What follows if which cells are missing depends on observed values; None if it does not seem to."""
        p_value = self.mcar.p_value
        if not self.depends and (p_value is None or p_value > LEVEL):
            return None
        pairs = listing([f"{d.column} on {d.on}" for d in self.depends], 3, "str") or f"p = {p_value:.2g}"
        return (
            f"which cells are missing depends on observed values ({pairs}): complete-case analysis would in general be biased; "
            "methods for cells missing at random (fit, em) are right if what it depends on is in the model; whether it depends "
            "on the missing values themselves, too (MNAR), cannot be seen from the data"
        )

    def plot(self, ax: Any = None) -> Any:
        """Which columns are missing together, and in what share of the rows: a row of the plot for each pattern, the most
        frequent first, by matplotlib; gives the axes. Of many columns those that are missing most."""
        from suffice.basis.pictures.plots import plot_gaps

        gappy = sorted((c for c in self.columns if c.missing), key=lambda c: -c.missing)[:MANY_COLUMNS]
        kept = {c.name for c in gappy}
        names = [c.name for c in self.columns if c.name in kept]
        return plot_gaps(ax, names, [(p.missing, p.share) for p in self.patterns], title=self._headline())

    def to_dict(self) -> dict[str, Any]:
        """All of the report as numbers, texts, lists and dicts, for JSON."""
        facts = {name: _plain(value) for name, value in self.__dict__.items() if name != "compared"}
        facts |= {} if self.compared is None else {"compared": self.compared.to_dict()}
        more = {"incomplete": self.incomplete, "complete_share": self.complete_share, "warning": self.warning}
        return facts | more

    def _headline(self) -> str:
        cells = self.weight * len(self.columns)
        weight = "" if self.weight == self.n_rows else f" (weight {self.weight:,.10g})"
        return (
            f"{quantity(self.n_rows, 'row')}{weight} of {quantity(len(self.columns), 'column')}, {_count(self.missing)} of "
            f"{_count(cells)} cells missing ({_percent(self.missing / cells if cells else 0.0)})"
        )

    def _facts(self) -> list[str]:
        kept = f"complete-case analysis would keep {100 * self.complete_share:.3g} % of the rows"
        facts = [f"{_count(self.complete)} rows are complete: {kept}"]
        if self.empty_rows:
            facts.append(f"{_count(self.empty_rows)} rows have no observed cell")
        if self.empty_columns:
            facts.append(f"without an observed cell: {listing(self.empty_columns)}")
        return [*facts, *self.notes]

    def _tables(self) -> list[tuple[list[str], list[list[object]], str]]:
        """Header, rows, and what was cut."""
        gaps: list[list[object]] = [[c.name, _count(c.missing), _percent(c.share)] for c in self.columns if c.missing]
        together: list[list[object]] = [
            [listing(p.missing, 6, "str") or "nothing", _count(p.rows), _percent(p.share)] for p in self.patterns
        ]
        depends: list[list[object]] = [[d.column, d.on, d.p_value, d.strength] for d in self.depends]
        tables = (
            (["column", "missing", "share"], gaps, MANY_COLUMNS),
            (["missing together", "rows", "share"], together, SHOWN),
            (["whether it is missing", "depends on", "p", "strength"], depends, SHOWN),
        )
        return [(h, rows[:n], f"… and {len(rows) - n:,} more" if len(rows) > n else "") for h, rows, n in tables]

    def __repr__(self) -> str:
        head = "\n".join([f"Missingness: {self._headline()}", *self._facts()])
        gaps, together, depends = (f"{text_table(h, rows)}\n{cut}".rstrip() if rows else "" for h, rows, cut in self._tables())
        said = (f"MCAR: {self.mcar}", f"warning: {self.warning}" if self.warning else "")
        test, warning = (fill(text, WIDTH, break_long_words=False, break_on_hyphens=False) for text in said)
        compared = "" if self.compared is None else f"along {self.compared.dag}:\n{self.compared!r}"
        return "\n\n".join(part for part in (head, gaps, together, test, depends, warning, compared) if part)

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{escape(line)}</p>" for line in [*self._facts(), f"MCAR: {self.mcar}", self.warning or ""] if line)
        tables = "".join(html_table(h, rows) + (f"<p>{cut}</p>" if cut else "") for h, rows, cut in self._tables() if rows)
        compared = "" if self.compared is None else self.compared._repr_html_()
        return f"<p><b>{escape(self._headline())}</b></p>{lines}{tables}{compared}"


@dataclass(frozen=True, eq=False)
class CompleteCases(Step[dict[str, Any]]):
    """Of the rows without a missing cell: counts of states, and Σ w, Σ w d and Σ w d² of numbers, d from a centre."""

    sizes: Mapping[str, int]
    centres: Mapping[str, float]

    def of(self, block: Block) -> dict[str, Any]:
        whole = np.flatnonzero(~np.any([is_missing(cells) for cells in block.columns.values()], axis=0))
        weight, result = block.weights[whole], {}
        for name, cells in block.columns.items():
            if name in self.sizes:
                result[name] = np.bincount(cells[whole], weight, self.sizes[name])
            else:
                d = cells[whole] - self.centres[name]
                result[name] = np.array([weight.sum(), (weight * d).sum(), (weight * d * d).sum()])
        return result


def _compare_cases(rows: Data, columns: Columns, found: MissingSummary, compare: Any) -> CaseEstimates:
    """The estimates of each column that is compared; `compare` is the graph for EM, or True to find one by structural EM."""
    from suffice.incomplete.numbers.units import observed_cells

    told = [n for n in rows.columns if (n in columns.finite or n in columns.reals) and n not in rows.identifiers]
    if not told:
        raise DataError("there are no columns whose estimates could be compared")
    model = _model(rows.select(told), compare)
    some = rows.select([n for n in told if n in model])
    schema = some.schema
    available: dict[str, tuple[float, float]] = {}
    for name in [n for n, v in schema.items() if not isinstance(v, Finite)]:
        spread = observed_cells(some.select([name]), (name,))
        weight, mean = float(spread.weight[0]), float(spread.mean[0, 0] + spread.rest[0, 0])
        available[name] = mean, float(np.sqrt(spread.scatter[0, 0, 0] / weight)) if weight else np.nan
    sizes = {n: v.n_states for n, v in schema.items() if isinstance(v, Finite)}
    complete = some.fold(CompleteCases(sizes, {n: mean for n, (mean, _) in available.items()}))
    result: list[CaseEstimate] = []
    for name, variable in schema.items():
        answer: Any = model.query(name)
        if isinstance(variable, Finite):
            parts = (_shares(complete[name]), _shares(found.tables[name][0]), answer.probs)
            result += [CaseEstimate(name, s, *(float(p[i]) for p in parts)) for i, s in enumerate(variable.states)]
        else:
            (weight, first, second), around = complete[name].tolist(), (np.nan, np.nan)
            if weight > 0:  # mean and standard deviation, from sums around that of all cells
                off = first / weight
                around = available[name][0] + off, float(np.sqrt(max(second / weight - off * off, 0.0)))
            each = (around, available[name], (float(answer.mean), float(answer.sd)))
            result += [CaseEstimate(name, what, *(m[i] for m in each)) for i, what in enumerate(("mean", "sd"))]
    return CaseEstimates(model.dag, tuple(result))


def _model(data: Data, compare: Any) -> Any:
    from suffice.graphs import Dag
    from suffice.learning.em import em

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SufficeNote)
        if compare is True:
            from suffice.recipes.structural.structural_em import structural_em

            return structural_em(data).model
        graph = Dag(compare)
        if unknown := [n for n in graph.nodes if n not in data.columns]:
            raise DataError(f"the graph to compare by names {listing(unknown)}, no column that can be compared")
        return em(graph, data, information=False).model


def _shares(counts: Any) -> Any:
    total = counts.sum()
    return counts / total if total > 0 else np.full(len(counts), np.nan)


def _report(rows: Data, columns: Columns, found: MissingSummary) -> Missingness:
    number = float if rows.weighted else int
    weight = number(found.weight)
    per_row = 1.0 / weight if weight > 0 else 0.0
    gaps = [ColumnGaps(n, number(m), float(m) * per_row) for n, m in zip(columns.every, found.cells, strict=True)]
    patterns = []
    for key, w in found.patterns.weights.items():
        gone = np.unpackbits(np.frombuffer(key, np.uint8))[: len(columns.every)]
        patterns.append(Pattern(tuple(n for n, flag in zip(columns.every, gone, strict=True) if flag), number(w), w * per_row))
    patterns.sort(key=lambda p: (-p.rows, len(p.missing), p.missing))
    mcar, pairs = mcar_test(columns, found)
    notes = []
    if found.patterns.others:
        others = _count(found.patterns.others)
        notes.append(f"there are very many patterns: the {MAX_PATTERNS:,} most frequent are kept, {others} rows have others")
    there = [n for n, v in rows.schema.items() if rows.missing[n] < rows.n_rows]
    left_out = [n for n in there if n not in columns.finite and n not in columns.reals]
    if columns.gappy and left_out == there:
        notes.append(f"the pairs of {quantity(len(there), 'column')} were not compared: they are too many")
    elif columns.gappy and left_out:
        notes.append(f"columns of more than {MAX_STATES:,} states were not compared: {listing(left_out)}")
    if rows.weighted and not rows.whole_weights:
        notes.append("weights that are no whole numbers count as rows in the tests")
    complete, empty_rows = map(number, found.ends)
    empty = tuple(n for n in columns.every if rows.missing[n] == rows.n_rows)
    depends = tuple(p for p in pairs if p.p_value <= LEVEL)
    facts = (tuple(gaps), tuple(patterns), complete, empty_rows, empty, mcar, depends, tuple(notes))
    return Missingness(rows.n_rows, weight, *facts)


def _plain(x: Any) -> Any:
    if hasattr(x, "_asdict"):
        return {name: _plain(value) for name, value in x._asdict().items()}
    return [_plain(value) for value in x] if isinstance(x, tuple) else x


def _count(weight: float) -> str:
    return f"{weight:,.10g}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
