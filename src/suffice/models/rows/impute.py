"""Imputation: missing cells of rows, each filled by what is most probable, all of a row together, or by draws of all of them.

    p(missing | observed) = Π p(cell | observed, the cells drawn before)

Draws go node by node, each from its exact posterior given the cells drawn before, so what is drawn is exact, too; rows that are
equal, or have become so, share an inference. Every way fills in place and says which rows are impossible: their gaps stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Bools
from suffice.basis.libraries import pa, pc, sc
from suffice.basis.variables import Finite, Variable
from suffice.engines import is_missing
from suffice.engines.engine import Block
from suffice.engines.scan import maps_frames, rows_of
from suffice.engines.sequences.arrangement import REFUSE, Missing, Refuse, checked_unknown
from suffice.errors import DataError, ModelError, listing, note, whole
from suffice.errors.remedies import Remedy, argument, name_of
from suffice.incomplete.rows import RowEvidence, best, fill_each, fill_together, pick_codes
from suffice.models.parts.closed_forms import NoFormula, advising
from suffice.models.parts.network_parts import NetworkParts
from suffice.models.questions.exact import above, reduce_network
from suffice.models.rows import posteriors
from suffice.models.rows.frames import Fill, checked_size, fill_frame, in_place, is_held
from suffice.models.rows.posteriors import Places, cells, is_seen
from suffice.numerics.inference.finite.network import NONE, Array, Ints
from suffice.statistics.counts import keys_of

MAX_NUMBERS = 2**23
"""Cells of copies of rows that are held at once: 64 MiB."""

REDRAW = 1_000_003
"""Sets the draws of parameters apart from those of cells, which have the same seed."""

NO_ROWS = np.zeros(0, np.int64)

ONE_COLUMN = Remedy("predict(rows, column, method=LikelihoodWeighting())", "suffice predict --method lw:10000")


def impute(
    bn: NetworkParts,
    rows: Any,
    *,
    joint: bool = False,
    draws: int | None = None,
    redraw: bool | None = None,
    seed: int = 0,
    unknown: Refuse | Missing = REFUSE,
) -> Any:
    """What `BayesNet.impute` gives."""
    rows = rows.collect() if type(rows).__name__ == "LazyFrame" else rows
    if maps_frames(rows):
        if draws is not None:
            raise DataError("draws= gives several tables, and rows of Spark are filled in once: leave it out")
        return in_place(rows, partial(impute, bn, joint=joint, seed=seed, unknown=unknown))
    data = rows_of(rows)
    variables = posteriors.present(bn, data.columns)
    numbers = [n for n, v in variables.items() if not isinstance(v, Finite)]
    if joint and numbers:
        raise ModelError(
            f"{Remedy('joint=True', '--joint')} is for finite columns, and {listing(numbers)} hold numbers; leave "
            f"{name_of('joint')} out"
        )
    if joint and draws is not None:
        raise ModelError(
            f"cells are filled by what is most probable ({Remedy('joint=True', '--joint')}) or by draws, which are joint "
            f"anyway, not by both"
        )
    held = is_held(rows)
    names = data.columns
    keep = tuple(n for n in names if not held or _in_bins(variables.get(n)))
    draws = None if draws is None else whole(draws, "the number of draws", 1, ModelError)
    seed = 0 if draws is None else whole(seed, "a seed", 0, ModelError)
    step = Impute(bn, tuple(variables), joint, _networks(bn, draws, redraw, seed), seed, data.engine.text_columns(keep))
    checked_size(data.engine.n_rows, len(names) * (int(not held) if draws is None else draws))
    data = data.with_variables(variables, checked_unknown(unknown)).select(variables)
    blocks = list(data.map(step, keep=keep, what="filling rows"))
    impossible = Places()
    for block in blocks:
        impossible.add(block.number, block.impossible)
    posteriors.tell_impossible(data, impossible, "their missing cells stay missing")
    fills = _fills(blocks, variables, draws or 1)
    by_name = frozenset[str]().union(*(b.by_name for b in blocks))
    if binned := [n for n in fills[0] if _in_bins(variables[n]) and n not in by_name]:
        note(f"{listing(binned)}: known to the network in bins only, and a bin is not a number; missing cells there stay missing")
    frame = rows if held else pa.table({n: pa.array([], pa.string()) for n in names})
    if blocks and not held:
        frame = pa.concat_tables([pa.table(b.kept) for b in blocks], promote_options="permissive")
    answers = [fill_frame(frame, {n: f for n, f in each.items() if n not in binned}) for each in fills]
    return answers[0] if draws is None else answers


class Filled(NamedTuple):
    """What fills the gaps of a block of rows, in parts: by column, which rows have one, and their cells, a line per draw."""

    number: int
    n_rows: int
    parts: list[dict[str, tuple[Ints, npt.NDArray[Any]]]]
    impossible: Ints
    kept: dict[str, Any]
    by_name: frozenset[str]
    """The columns whose cells were the names of bins, not numbers."""


@dataclass(frozen=True, eq=False)
class Impute:
    """The step that fills the gaps of a block of rows in some columns. A cell's random number depends on nothing but the seed,
    the number of the draw, the block, the row in it and the node: threads and the order of the columns change nothing."""

    bn: NetworkParts
    names: tuple[str, ...]
    joint: bool
    networks: tuple[NetworkParts, ...] | None
    """The network that each draw is made from; None where nothing is drawn."""
    seed: int
    untyped: frozenset[str]

    def __call__(self, block: Block) -> Filled:
        seen = posteriors.row_evidence(self.bn, block)
        nodes = self.bn.compiled.finite, self.bn.compiled.reals
        finite, reals = (np.array([n in self.names for n in some], bool) for some in nodes)  # other nodes have no cells
        gaps = RowEvidence((seen.codes == NONE) & finite, np.isnan(seen.reals) & reals)
        rows = np.flatnonzero(np.concatenate(gaps, axis=1).any(axis=1))
        size = len(self.networks or (1,)) * self._width
        some_rows = np.array_split(rows, -(-len(rows) * size // MAX_NUMBERS) or 1)
        found = [self._fill_gaps(seen.take(some), gaps.take(some), some, block.number) for some in some_rows if len(some)]
        impossible = np.concatenate([NO_ROWS, *(rows for _, rows in found)])
        kept = {n: self._meaning_of(n, c, block) if n in self.untyped else c for n, c in block.kept.items()}
        by_name = frozenset(n for n, c in block.kept.items() if _names_bins(self.bn.variables.get(n), c))
        return Filled(block.number, block.n_rows, [fills for fills, _ in found], impossible, kept, by_name)

    def _fill_gaps(
        self, seen: RowEvidence, gaps: RowEvidence, rows: Ints, number: int
    ) -> tuple[dict[str, tuple[Ints, Any]], Ints]:
        """What fills the gaps of some rows, and those of them that are impossible."""
        n, full = len(rows), seen.take(np.arange(len(rows)))
        way_out = f"or predict one column at a time, which can be drawn: {ONE_COLUMN}"
        with advising(lambda refused: f"fill in {listing(refused.lacking)} before, {way_out}"):
            if self.networks is not None:
                full, impossible = self._draw_rows(self.networks, seen, gaps, number, rows)
            elif self.joint:
                # all columns are finite; regressions on numbers, which are no columns, must be barren
                impossible = fill_together(reduce_network(self.bn, self.names).compiled.network, full.codes, gaps.codes)
            else:
                impossible = most_probable_each(self.bn, full, gaps)
        fills = {}
        for name in self.names:
            own = np.flatnonzero(cells(self.bn, name, gaps))
            if len(own):
                fills[name] = rows[own], cells(self.bn, name, full).reshape(-1, n)[:, own]
        return fills, rows[impossible[:n]]

    def _draw_rows(
        self, networks: tuple[NetworkParts, ...], seen: RowEvidence, gaps: RowEvidence, number: int, rows: Ints
    ) -> tuple[RowEvidence, Bools]:
        """The rows of all draws, one draw after another; draws from the same network go together."""
        parts, same = [], networks if len(set(map(id, networks))) > 1 else networks[:1]
        for first, bn in enumerate(same):
            draws = [first] if len(same) > 1 else range(len(networks))
            copies = np.tile(np.arange(len(rows)), len(draws))
            full, uniforms = seen.take(copies), np.concatenate([self._uniforms(draw, number, rows) for draw in draws])
            parts.append((full, draw_together(bn, full, gaps.take(copies), uniforms)))
        codes, reals = (np.concatenate([part[0][i] for part in parts]) for i in (0, 1))
        return RowEvidence(codes, reals), np.concatenate([impossible for _, impossible in parts])

    @property
    def _width(self) -> int:
        return -(-len(self.bn) // 4) * 4  # Philox makes four numbers at a time

    def _uniforms(self, draw: int, number: int, rows: Ints) -> Array:
        """A number strictly between 0 and 1 for each row and node: rows are far apart in the stream of a draw and a block."""
        stream = np.random.Philox(np.random.SeedSequence((self.seed, draw, number)))
        stream.advance(int(rows[0]) * self._width // 4)
        numbers = np.random.Generator(stream).random((int(rows[-1] + 1 - rows[0]), self._width))
        return np.asarray(np.maximum(numbers[rows - rows[0]], 2.0**-54))

    def _meaning_of(self, name: str, cells: Any, block: Block) -> Any:
        """The words of a text file as what they mean: numbers, states, nothing."""
        variable = self.bn.variables.get(name)
        if variable is None or _in_bins(variable):
            text = cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells
            return pc.if_else(pc.equal(text, ""), pa.scalar(None, text.type), text)
        found = block.columns[name]
        if not isinstance(variable, Finite):
            return pa.array(found, from_pandas=True)
        codes = pa.array(found.astype(np.int32), mask=is_missing(found))
        return pa.DictionaryArray.from_arrays(codes, pa.array(variable.states, pa.string()))


def _networks(bn: NetworkParts, draws: int | None, redraw: bool | None, seed: int) -> tuple[NetworkParts, ...] | None:
    """The network for each draw: its parameters are drawn anew, unless they are to be held."""
    if not isinstance(redraw, (bool, type(None))):
        raise ModelError(f"redraw is True, False or left out, not {redraw!r}")
    if draws is None:
        if redraw is not None:
            raise ModelError(
                f"{argument('redraw')} is for {argument('draws')}: cells that are filled by what is most probable are filled "
                f"at the estimates"
            )
        return None
    if redraw is False or (redraw is None and not (bn.is_fitted or any(bn[n].has_posterior for n in bn))):
        return (bn,) * draws
    from suffice.models.estimation import networks_at_draws

    return tuple(networks_at_draws(bn, draws, [seed, REDRAW], every=bool(redraw)))


def _fills(blocks: Sequence[Filled], variables: Mapping[str, Variable], draws: int) -> list[dict[str, Fill]]:
    """For each draw, what fills each column that has gaps."""
    starts = np.cumsum([0, *(b.n_rows for b in blocks)])
    fills: list[dict[str, Fill]] = [{} for _ in range(draws)]
    for name, variable in variables.items():
        if parts := [(start, *p[name]) for start, b in zip(starts, blocks, strict=False) for p in b.parts if name in p]:
            rows = np.concatenate([start + rows for start, rows, _ in parts])
            states = variable.states if isinstance(variable, Finite) else None
            for draw, fill in enumerate(fills):
                fill[name] = Fill(name, rows, np.concatenate([cells[draw] for _, _, cells in parts]), states)
    return fills


def _in_bins(variable: Variable | None) -> bool:
    return isinstance(variable, Finite) and variable.cuts is not None


def _names_bins(variable: Variable | None, cells: Any) -> bool:
    """Whether cells are the names of bins."""
    if not isinstance(variable, Finite) or variable.cuts is None:
        return False
    words = cells.dictionary if pa.types.is_dictionary(cells.type) else cells
    is_text = any(test(words.type) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))
    return is_text and bool(pc.any(pc.is_in(words.cast(pa.string()), pa.array(variable.states, pa.string()))).as_py())


def most_probable_each(bn: NetworkParts, rows: RowEvidence, gaps: RowEvidence) -> Bools:
    """Every gap by itself: its most probable state, or its mean."""
    compiled = bn.compiled
    if not compiled.reals:
        return fill_each(compiled.network, rows.codes, gaps.codes)
    seen, impossible = RowEvidence(*(cells.copy() for cells in rows)), np.zeros(rows.n_rows, bool)
    for name in bn:
        some = np.flatnonzero(cells(bn, name, gaps))
        if len(some):
            try:
                answer = posteriors.row_posterior(bn, name, seen.take(some))
            except NoFormula as refused:
                answer = posteriors.row_integrals(bn, seen.take(some), refused, name).posterior(name)
            impossible[some[np.isnan(answer[:, 0])]] = True
            cells(bn, name, rows)[some] = best(answer) if name in compiled.index else answer[:, 0]
    return impossible


def draw_together(bn: NetworkParts, rows: RowEvidence, gaps: RowEvidence, uniforms: Array) -> Bools:
    """All gaps of a row drawn from their posterior.

    `uniforms` has a column per node, in the order of `bn`. First come the finite parents of real nodes (also those that are no
    columns: what hangs on them would not be Gaussian otherwise), then the other finite variables, of which the real ones tell no
    more, and then the real ones, each Gaussian given what is before.

    With open regressions it is first the finite nodes with no number above them, then all others, parents before children. A
    number is drawn by its normal posterior, which it has where the finite parents of all numbers that tell of it are known by
    then; an open regression by its own distribution, where nothing below it is observed. What is left over is refused.
    """
    compiled, order = bn.compiled, {n: i for i, n in enumerate(bn)}
    impossible = np.zeros(rows.n_rows, bool)

    def draw(name: str, wanted: Bools, seen: RowEvidence = rows) -> None:
        some = np.flatnonzero(wanted & ~is_seen(bn, name, rows) & ~impossible)
        if len(some):
            shown, own = seen.take(some), uniforms[some, order[name]]
            numbers = shown.reals.view(np.int64).reshape(shown.reals.shape)
            keys = keys_of(np.concatenate([shown.codes.astype(np.int64), numbers], axis=1))
            _, first, which = np.unique(keys, return_index=True, return_inverse=True)  # equal rows are asked about once
            answer = posteriors.row_posterior(bn, name, shown.take(first))[which]
            impossible[some[np.isnan(answer[:, 0])]] = True
            drawn = pick_codes(answer, own) if name in compiled.index else _numbers(bn, name, rows.take(some), answer, own)
            cells(bn, name, rows)[some] = drawn

    above = [n for n in bn.dag.topological_order if _is_above_numbers(bn, n)]
    for name in above if compiled.open else [n for n in compiled.finite if _is_mixing(bn, n)]:
        draw(name, ~impossible if _is_mixing(bn, name) else cells(bn, name, gaps))
    if not compiled.open:
        states = RowEvidence(rows.codes, np.full_like(rows.reals, np.nan))
        for name in compiled.finite:
            draw(name, cells(bn, name, gaps), states)
    for name in [n for n in bn.dag.topological_order if n not in above] if compiled.open else compiled.reals:
        draw(name, cells(bn, name, gaps))
    rows.codes[impossible[:, None] & gaps.codes] = NONE
    rows.reals[impossible[:, None] & gaps.reals] = np.nan
    return impossible


def _is_above_numbers(bn: NetworkParts, name: str) -> bool:
    return all(isinstance(bn.variables[n], Finite) for n in (name, *bn.dag.ancestors(name)))


def _is_mixing(bn: NetworkParts, name: str) -> bool:
    """Whether numbers are mixtures over this node: it is drawn even if it is no column."""
    return _is_above_numbers(bn, name) and any(not isinstance(bn.variables[c], Finite) for c in bn.dag.children(name))


def _numbers(bn: NetworkParts, name: str, rows: RowEvidence, moments: Array, uniforms: Array) -> Array:
    """Real cells by their means and variances, counts, whose finite parents are known by now, by their rates, open regressions by
    their own distribution."""
    cpd, (mean, variance) = bn[name], moments.T
    if cpd.is_open:
        for v in cpd.finite_parents:
            if not is_seen(bn, v.name, rows).all():
                raise _is_mixture(name, v.name)
        result, fine = np.full(rows.n_rows, np.nan), ~np.isnan(mean)
        result[fine] = cpd.quantiles({p: cells(bn, p, rows)[fine] for p in cpd.parents}, uniforms[fine])
        return result
    if bn.compiled.open:
        _refuse_mixture(bn, name, rows)
    if name in bn.compiled.counts:
        return np.asarray(cpd.quantiles_at(mean, variance, uniforms))
    return np.asarray(mean + np.sqrt(variance) * sc.ndtri(uniforms))


def _refuse_mixture(bn: NetworkParts, name: str, rows: RowEvidence) -> None:
    """Refuse a number whose posterior may be a mixture: a finite parent of it, or of a number that tells of it, is not known."""
    below = [n for n in bn if name in bn.dag.ancestors(n) and is_seen(bn, n, rows).any()]
    numbers = [n for n in above(bn.dag, (name, *below)) if not isinstance(bn.variables[n], Finite)]
    telling = [n for n in numbers if n in (name, *below) or not is_seen(bn, n, rows).all()]
    for parent in (v.name for n in sorted(telling) for v in bn[n].finite_parents):
        if not is_seen(bn, parent, rows).all():
            raise _is_mixture(name, parent)


def _is_mixture(name: str, parent: str) -> ModelError:
    return ModelError(
        f"the missing cells of {name!r} cannot be drawn exactly: they are a mixture over {parent!r}, which is not observed in "
        "some row; fill them by their means, without draws, or give that column"
    )
