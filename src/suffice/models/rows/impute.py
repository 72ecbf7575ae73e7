"""Imputation: missing cells of rows, filled by what is most probable given the cells that are observed, or by draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.engines import is_missing
from suffice.engines.engine import Block
from suffice.engines.scan import rows_of
from suffice.errors import ModelError, listed, note
from suffice.inference.rows import RowEvidence
from suffice.models.no_formula import NoFormula, advising
from suffice.models.rows.completions import Gaps, draw_together, most_probable_each, most_probable_together
from suffice.models.rows.evidence import column, present, row_evidence
from suffice.models.rows.filling import Fill, filled
from suffice.models.rows.frames import checked_size
from suffice.models.rows.posteriors import Places, tell_impossible
from suffice.variables import Finite, Variable

if TYPE_CHECKING:
    from suffice.models.bayes_net import BayesNet

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_NUMBERS = 2**23
"""Cells of copies of rows that are held at once: 64 MiB."""

NO_ROWS = np.zeros(0, np.int64)


def impute(bn: BayesNet, rows: Any, *, joint: bool = False, draws: int | None = None, seed: int = 0) -> Any:
    """The rows with every missing cell of the network's columns filled, in the same kind of frame, columns and order.

    A cell gets its most probable state given the observed cells of its row (the first of equals); a cell of a real variable
    its posterior mean. `joint=True` fills all the missing cells of a row by the states that are most probable together;
    then there may be no real columns. `draws=5` gives a list of five such frames, in which all the missing cells of a row are
    drawn together from their exact posterior; the same `seed` gives the same draws. What comes out:

    - columns keep their types where they can: a category or an enumeration gains a state that it lacked, a column of whole
      numbers that gets means becomes one of floats, and one without a single value takes the type of what it is given;
    - columns that are no nodes stay as they are, and nodes that are no columns are not added;
    - a column of numbers that the network knows in bins stays as it is, with a note: a bin is not a number;
    - rows that are impossible under the network keep their missing cells, with a note;
    - files, `Data` and DuckDB relations become an Arrow table in memory, a lazy frame a frame.

    >>> from suffice.models.bayes_net import BayesNet
    >>> x, y = Finite("x", ["no", "yes"]), Finite("y", ["no", "yes"])
    >>> bn = BayesNet("x -> y", {"x": [0.75, 0.25], "y": [[0.9, 0.1], [0.2, 0.8]]}, variables=[x, y])
    >>> impute(bn, {"x": ["yes", None], "y": [None, "no"], "id": [1, 2]})
    {'x': ['yes', 'no'], 'y': ['yes', 'no'], 'id': [1, 2]}

    Multiple imputation (Rubin 1987, Multiple Imputation for Nonresponse in Surveys, p. 76): an estimate from each of m filled
    frames, their mean, and a variance that adds to the usual one how much they differ. The draws are at the parameters that
    the network has; that these are uncertain, too, comes in with draws from networks fitted to bootstrap samples of the rows.

    >>> table = {"x": ["yes"] * 30 + ["no"] * 60 + [None] * 30, "y": ["yes"] * 30 + ["no"] * 60 + ["yes"] * 15 + ["no"] * 15}
    >>> shares = np.array([np.mean([x == "yes" for x in frame["x"]]) for frame in impute(bn, table, draws=20)])
    >>> within, between = np.mean(shares * (1 - shares)) / 120, shares.var(ddof=1)
    >>> error = (within + (1 + 1 / 20) * between) ** 0.5
    >>> f"{shares.mean():.2f} ± {error:.3f}"
    '0.35 ± 0.046'
    """
    rows = rows.collect() if type(rows).__name__ == "LazyFrame" else rows
    data = rows_of(rows)
    variables = present(bn, data.columns)
    numbers = [n for n, v in variables.items() if not isinstance(v, Finite)]
    if joint and numbers:
        raise ModelError(f"joint=True is for finite columns, and {listed(numbers)} hold numbers; leave joint out")
    if joint and draws is not None:
        raise ModelError(
            "cells are filled by what is most probable (joint=True) or by draws, which are joint anyway, not by both"
        )
    held = isinstance(rows, (Mapping, np.ndarray)) or _is_frame(rows)
    names = data.columns
    keep = tuple(n for n in names if not held or _in_bins(variables.get(n)))
    draws = None if draws is None else _whole(draws, "the number of draws", 1)
    seed = 0 if draws is None else _whole(seed, "a seed", 0)
    step = Impute(bn, tuple(variables), joint, draws, seed, data.engine.untyped(keep))
    checked_size(data.engine.n_rows, len(names) * (int(not held) if draws is None else draws))
    data = data.with_variables(variables).take(variables)
    blocks = list(data.map(step, keep=keep, what="filling rows"))
    impossible = Places()
    for block in blocks:
        impossible.add(block.number, block.impossible)
    tell_impossible(data, impossible, "their missing cells stay missing")
    fills = _fills(blocks, variables, draws or 1)
    by_name = frozenset[str]().union(*(b.by_name for b in blocks))
    binned = [n for n in fills[0] if _in_bins(variables[n]) and n not in by_name]
    if binned:
        note(f"{listed(binned)}: known to the network in bins only, and a bin is not a number; missing cells there stay missing")
    whole = rows if held else _table(names, blocks)
    answers = [filled(whole, {n: f for n, f in each.items() if n not in binned}) for each in fills]
    return answers[0] if draws is None else answers


class Filled(NamedTuple):
    """What fills the gaps of a block of rows: by column, which of its rows have one, and their cells, a line per draw."""

    number: int
    n_rows: int
    cells: dict[str, tuple[Ints, npt.NDArray[Any]]]
    impossible: Ints
    kept: dict[str, Any]
    by_name: frozenset[str]
    """The columns whose cells were the names of bins, not numbers."""


@dataclass(frozen=True, eq=False)
class Impute:
    """The step that fills the gaps of a block of rows in some columns.

    A cell's random number depends on nothing but the seed, the number of the draw, the block, the row in it and the node: threads
    and the order of the columns change nothing.
    """

    bn: BayesNet
    names: tuple[str, ...]
    joint: bool
    draws: int | None
    seed: int
    untyped: frozenset[str]

    def __call__(self, block: Block) -> Filled:
        seen = row_evidence(self.bn, block)
        gaps = Gaps.of(self.bn, self.names, seen)
        rows = np.flatnonzero(gaps.any)
        size = (self.draws or 1) * self._width
        found = []
        for some in np.array_split(rows, -(-len(rows) * size // MAX_NUMBERS) or 1):
            if len(some):
                found.append(self._filled(seen.take(some), gaps.take(some), some, block.number))
        cells = {
            n: (np.concatenate([p[n][0] for p, _ in own]), np.concatenate([p[n][1] for p, _ in own], axis=1))
            for n in self.names
            if (own := [part for part in found if n in part[0]])
        }
        impossible = np.concatenate([NO_ROWS, *(rows for _, rows in found)])
        kept = {n: self._meant(n, c, block) if n in self.untyped else c for n, c in block.kept.items()}
        by_name = frozenset(n for n, c in block.kept.items() if _names_bins(self.bn.variables.get(n), c))
        return Filled(block.number, block.n_rows, cells, impossible, kept, by_name)

    def _filled(self, seen: RowEvidence, gaps: Gaps, rows: Ints, number: int) -> tuple[dict[str, tuple[Ints, Any]], Ints]:
        """What fills the gaps of some rows, and those of them that are impossible."""
        n, copies = len(rows), np.tile(np.arange(len(rows)), self.draws or 1)
        full = seen.take(copies)
        with advising(_one_column):
            if self.draws is not None:
                uniforms = np.concatenate([self._uniforms(draw, number, rows) for draw in range(self.draws)])
                impossible = draw_together(self.bn, full, gaps.take(copies), copies, uniforms)
            elif self.joint:
                impossible = most_probable_together(self.bn, full, gaps, self.names)
            else:
                impossible = most_probable_each(self.bn, full, gaps)
        cells = {}
        for name in self.names:
            own = np.flatnonzero(gaps.at(self.bn, name))
            if len(own):
                cells[name] = rows[own], column(self.bn, name, full).reshape(-1, n)[:, own]
        return cells, rows[impossible[:n]]

    @property
    def _width(self) -> int:
        return -(-len(self.bn) // 4) * 4  # Philox makes four numbers at a time

    def _uniforms(self, draw: int, number: int, rows: Ints) -> Array:
        """A number strictly between 0 and 1 for each row and node: rows are far apart in the stream of a draw and a block."""
        stream = np.random.Philox(np.random.SeedSequence((self.seed, draw, number)))
        stream.advance(int(rows[0]) * self._width // 4)
        numbers = np.random.Generator(stream).random((int(rows[-1] + 1 - rows[0]), self._width))
        return np.asarray(np.maximum(numbers[rows - rows[0]], 2.0**-54))

    def _meant(self, name: str, cells: Any, block: Block) -> Any:
        """The words of a text file as what they mean: numbers, states, nothing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        variable = self.bn.variables.get(name)
        if variable is None or _in_bins(variable):
            text = cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells
            return pc.if_else(pc.equal(text, ""), pa.scalar(None, text.type), text)
        found = block.columns[name]
        if not isinstance(variable, Finite):
            return pa.array(found, from_pandas=True)
        codes = pa.array(found.astype(np.int32), mask=is_missing(found))
        return pa.DictionaryArray.from_arrays(codes, pa.array(variable.states, pa.string()))


def _one_column(refused: NoFormula) -> str:
    return (
        f"fill in {listed(refused.lacking)} before, or predict one column at a time, which can be drawn: "
        "predict(rows, column, method=LikelihoodWeighting())"
    )


def _fills(blocks: Sequence[Filled], variables: Mapping[str, Variable], draws: int) -> list[dict[str, Fill]]:
    """For each draw, what fills each column that has gaps."""
    starts = np.cumsum([0, *(b.n_rows for b in blocks)])
    fills: list[dict[str, Fill]] = [{} for _ in range(draws)]
    for name, variable in variables.items():
        parts = [(start, *b.cells[name]) for start, b in zip(starts, blocks, strict=False) if name in b.cells]
        if parts:
            rows = np.concatenate([start + rows for start, rows, _ in parts])
            states = variable.states if isinstance(variable, Finite) else None
            for draw, fill in enumerate(fills):
                fill[name] = Fill(name, rows, np.concatenate([cells[draw] for _, _, cells in parts]), states)
    return fills


def _in_bins(variable: Variable | None) -> bool:
    return isinstance(variable, Finite) and variable.cuts is not None


def _names_bins(variable: Variable | None, cells: Any) -> bool:
    """Whether cells are the names of bins."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not isinstance(variable, Finite) or variable.cuts is None:
        return False
    words = cells.dictionary if pa.types.is_dictionary(cells.type) else cells
    is_text = any(test(words.type) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))
    return is_text and bool(pc.any(pc.is_in(words.cast(pa.string()), pa.array(variable.states, pa.string()))).as_py())


def _is_frame(rows: Any) -> bool:
    """Whether the rows are in memory, in a frame of a kind that can be given back."""
    import narwhals as nw
    import pyarrow as pa

    if isinstance(rows, pa.Table):
        return True
    frame = nw.from_native(rows, pass_through=True, eager_only=True)
    return isinstance(frame, nw.DataFrame) and (frame.implementation.is_pandas() or frame.implementation.is_polars())


def _table(names: Sequence[str], blocks: Sequence[Filled]) -> Any:
    import pyarrow as pa

    if not blocks:
        return pa.table({n: pa.array([], pa.string()) for n in names})
    return pa.concat_tables([pa.table(b.kept) for b in blocks], promote_options="permissive")


def _whole(number: Any, what: str, least: int) -> int:
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < least:
        raise ModelError(f"{what} is a whole number from {least} up, not {number!r}")
    return int(number)
