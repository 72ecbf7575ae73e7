"""Imputation: missing cells of rows, filled by what is most probable given the cells that are observed, or by draws."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.engines.encode import missing_code
from suffice.engines.passing import Passed, Passing, passing
from suffice.engines.sources import Kind
from suffice.errors import ModelError, listed, note
from suffice.inference.most_probable import most_probable
from suffice.inference.network import HINTED, NONE, Network
from suffice.inference.rows import marginals_in_rows
from suffice.models.completions import Completions
from suffice.models.filling import Fill, filled
from suffice.models.no_formula import NoFormula, advising
from suffice.models.regressions import reduced
from suffice.models.row_evidence import RowEvidence, present, row_evidence
from suffice.models.row_frames import checked_size
from suffice.models.row_posteriors import Impossible, best, row_posterior
from suffice.variables import Finite, Variable

if TYPE_CHECKING:
    from suffice.models.bayes_net import BayesNet

Ints = npt.NDArray[np.int64]

MAX_NUMBERS = 2**23
"""Probabilities that are held at once: 64 MiB."""


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
    coming = passing(rows)
    variables = present(bn, coming.names)
    numbers = [n for n, v in variables.items() if not isinstance(v, Finite)]
    if joint and numbers:
        raise ModelError(f"joint=True is for finite columns, and {listed(numbers)} hold numbers; leave joint out")
    if joint and draws is not None:
        raise ModelError(
            "cells are filled by what is most probable (joint=True) or by draws, which are joint anyway, not by both"
        )
    held = isinstance(rows, (Mapping, np.ndarray)) or _is_frame(rows)
    gaps = Gaps(bn, variables, joint) if draws is None else Completions(bn, variables, draws, seed)
    checked_size(coming.n_rows, len(coming.names) * (int(not held) if draws is None else draws))
    kept = []
    for block in coming.blocks(variables, () if held else coming.names, "filling rows"):
        with advising(_one_column):
            gaps.fill(block)
        kept.append(_kept(block, coming, variables))
    gaps.impossible.tell(coming, "their missing cells stay missing")
    frames = gaps.fills()
    binned = [n for n in frames[0] if _in_bins(variables[n]) and not coming.binned_by_name(n)]
    if binned:
        note(f"{listed(binned)}: known to the network in bins only, and a bin is not a number; missing cells there stay missing")
    whole = rows if held else _table(coming, kept)
    answers = [filled(whole, {n: f for n, f in fills.items() if n not in binned}) for fills in frames]
    return answers[0] if draws is None else answers


def _one_column(refused: NoFormula) -> str:
    return (
        f"fill in {listed(refused.lacking)} before, or predict one column at a time, which can be drawn: "
        "predict(rows, column, method=LikelihoodWeighting())"
    )


class Gaps:
    """The missing cells of rows, block by block, and what fills them."""

    def __init__(self, bn: BayesNet, variables: Mapping[str, Variable], joint: bool) -> None:
        self._bn, self._variables, self._joint = bn, variables, joint
        self._parts: dict[str, list[tuple[Ints, Any]]] = {n: [] for n in variables}
        self._explained: dict[bytes, Ints | None] = {}
        self.impossible = Impossible()

    def fills(self) -> list[dict[str, Fill]]:
        """What fills each column that has gaps: the one way that there is."""
        return [{n: _fill(self._variables[n], parts) for n, parts in self._parts.items() if parts}]

    def fill(self, block: Passed) -> None:
        """Find what fills the gaps of some rows."""
        seen = row_evidence(self._bn, block)
        impossible = self._together(seen, block.start) if self._joint else self._each(seen, block.start)
        self.impossible.add(block.start + np.flatnonzero(impossible))

    def _each(self, seen: RowEvidence, start: int) -> npt.NDArray[np.bool_]:
        """Every gap by itself."""
        compiled = self._bn.compiled
        impossible = np.zeros(len(seen.codes), bool)
        if not compiled.reals:
            return self._finite(seen, start)
        for name in self._variables:
            finite = name in compiled.index
            missing = (
                seen.codes[:, compiled.index[name]] == NONE if finite else np.isnan(seen.reals[:, compiled.real_index[name]])
            )
            rows = np.flatnonzero(missing)
            if len(rows):
                answer = row_posterior(self._bn, name, seen.take(rows))
                impossible[rows[np.isnan(answer[:, 0])]] = True
                self._parts[name].append((start + rows, best(answer) if finite else answer[:, 0]))
        return impossible

    def _finite(self, seen: RowEvidence, start: int) -> npt.NDArray[np.bool_]:
        """Every gap by itself in a finite network: all those of a row from the same messages."""
        compiled, codes = self._bn.compiled, seen.codes.copy()
        columns = [compiled.index[n] for n in self._variables]
        gaps = np.zeros(codes.shape, bool)
        gaps[:, columns] = codes[:, columns] == NONE
        codes[gaps] = HINTED
        impossible, starts = np.zeros(len(codes), bool), compiled.network.starts
        whole = np.flatnonzero(gaps.any(axis=1))
        if not len(whole):
            return impossible
        for rows in np.array_split(whole, -(-len(whole) * int(starts[-1]) // MAX_NUMBERS) or 1):
            probs = marginals_in_rows(compiled.network, codes[rows])
            impossible[rows] = np.isnan(probs).any(axis=1)
            for name, v in zip(self._variables, columns, strict=True):
                own = gaps[rows, v]
                if own.any():
                    self._parts[name].append((start + rows[own], best(probs[own, starts[v] : starts[v + 1]])))
        return impossible

    def _together(self, seen: RowEvidence, start: int) -> npt.NDArray[np.bool_]:
        """All gaps of a row at once; equal rows are explained once."""
        columns = np.array([self._bn.compiled.index[n] for n in self._variables])
        rows = np.flatnonzero((seen.codes[:, columns] == NONE).any(axis=1))
        full = seen.codes.astype(np.int64)
        impossible = np.zeros(len(full), bool)
        for row in rows:
            completed = self._completed(full[row], columns)
            impossible[row] = completed is None
            full[row] = full[row] if completed is None else completed
        for name, i in zip(self._variables, columns, strict=True):
            gaps = np.flatnonzero(seen.codes[:, i] == NONE)
            if len(gaps):
                self._parts[name].append((start + gaps, full[gaps, i]))
        return impossible

    @cached_property
    def _network(self) -> Network:
        """The finite network; regressions on numbers, which are no columns here, must be barren."""
        return reduced(self._bn, self._variables).compiled.network

    def _completed(self, codes: Ints, columns: Ints) -> Ints | None:
        """A row with its gaps filled, or None if it is impossible. Nodes that are no columns are summed out."""
        key = codes.tobytes()
        if key not in self._explained:
            targets = columns[codes[columns] == NONE]
            found = most_probable(self._network, targets, codes)
            completed = codes.copy()
            completed[targets] = found.codes
            self._explained[key] = completed if np.isfinite(found.log_prob) else None
        return self._explained[key]


def _fill(variable: Variable, parts: list[tuple[Ints, Any]]) -> Fill:
    rows, values = (np.concatenate(p) for p in zip(*parts, strict=True))
    return Fill(variable.name, rows, values, variable.states if isinstance(variable, Finite) else None)


def _in_bins(variable: Variable) -> bool:
    return isinstance(variable, Finite) and variable.cuts is not None


def _is_frame(rows: Any) -> bool:
    """Whether the rows are in memory, in a frame of a kind that can be given back."""
    import narwhals as nw
    import pyarrow as pa

    if isinstance(rows, pa.Table):
        return True
    frame = nw.from_native(rows, pass_through=True, eager_only=True)
    return isinstance(frame, nw.DataFrame) and (frame.implementation.is_pandas() or frame.implementation.is_polars())


def _kept(block: Passed, rows: Passing, variables: Mapping[str, Variable]) -> dict[str, Any]:
    """The columns of a block as they came; those of a text file as what they mean: numbers, states, nothing."""
    return {n: _meant(cells, n, block, variables) if rows.kind(n) is Kind.CELLS else cells for n, cells in block.kept.items()}


def _meant(cells: Any, name: str, block: Passed, variables: Mapping[str, Variable]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    variable = variables.get(name)
    if variable is None or _in_bins(variable):
        text = cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells
        return pc.if_else(pc.equal(text, ""), pa.scalar(None, text.type), text)
    found = block.columns[name]
    if not isinstance(variable, Finite):
        return pa.array(found, from_pandas=True)
    codes = pa.array(found.astype(np.int32), mask=found == missing_code(found.dtype))
    return pa.DictionaryArray.from_arrays(codes, pa.array(variable.states, pa.string()))


def _table(rows: Passing, blocks: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    if not blocks:
        return pa.table({n: pa.array([], pa.string()) for n in rows.names})
    return pa.concat_tables([pa.table(b) for b in blocks], promote_options="permissive")
