"""What is known of the missing cells of rows: p(target | row) and ln p(row), by whichever inference suits each row.

A cell that is missing is summed or integrated out, and so is a node that is no column at all.

Rows of finite cells go through the kernels, rows with numbers through densities of blocks of them (`incomplete.rows`), to
which regressions on numbers add factors of their own. In a row in which every node but the target t is observed,
or barren (neither it nor any node below it is observed), nothing is left to be summed out:

    p(t = k | row)  ∝  p(t = k | its parents) Π p(child | its parents, t = k)          over the observed children of t

so all that is needed of a distribution is its `log_prob`, whatever its family: regressions take part, too. Other observed nodes
only decide whether the row is possible at all.

In each row an open regression y (see `questions.exact`) adds a factor over those of its finite variables that the row does not
show,

    ln p(y | parents)          at the numbers of the row,

to a network in which it has a stand-in: of a finite y a uniform one, whose ln n states are added back. Where y is barren there is
no factor, and the stand-in sums to 1. Rows that leave an integral over a number without a formula are integrated over points
(`incomplete.numbers.mixed`): a missing number under a regression by quadrature, a missing count with children summed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Bools
from suffice.basis.blas import one_blas_thread
from suffice.basis.variables import Finite, NotNormal, Variable
from suffice.engines.data import Data
from suffice.engines.engine import Block, Step, is_missing
from suffice.engines.scan import maps_frames, scan
from suffice.engines.sequences.arrangement import REFUSE, Missing, Refuse, checked_unknown
from suffice.errors import DataError, MissingCells, ModelError, TooLarge, listing, nearest, note
from suffice.incomplete import rows as in_rows
from suffice.incomplete.numbers.mixed import RowIntegrals
from suffice.incomplete.numbers.patterns import INTEGRATED, SUMMED
from suffice.incomplete.rows import CELLS, Densities, NotFinite, RowEvidence, RowFactor, TargetMoments, in_parts
from suffice.models.parts.closed_forms import NoFormula, advising, no_formula, words
from suffice.models.parts.network_parts import NetworkParts
from suffice.models.questions.exact import refuse_by_name
from suffice.models.questions.question import requisite
from suffice.models.rows.frames import beside
from suffice.numerics.inference.finite.logs import shares
from suffice.numerics.inference.finite.network import NONE, Array, Ints
from suffice.numerics.inference.numbers.hybrid import checked_shape
from suffice.statistics.counts import equal_lines

MOMENTS = ("mean", "variance")
"""What the posterior of a real variable is told by."""

PROBABILITIES = 2**21
"""Rows are worked on in parts of at most about this many probabilities, where there is nothing to be summed out."""


def row_evidence(bn: NetworkParts, block: Block) -> RowEvidence:
    """Encoded rows by the numbers that a network's variables have; columns that are not there are not observed."""
    compiled = bn.compiled
    rows = RowEvidence(
        np.full((block.n_rows, len(compiled.finite)), NONE, np.int32), np.full((block.n_rows, len(compiled.reals)), np.nan)
    )
    for name, found in block.columns.items():
        if name in compiled.index:
            rows.codes[:, compiled.index[name]] = np.where(is_missing(found), np.int32(NONE), found)
        else:
            rows.reals[:, compiled.real_index[name]] = found
    return rows


def cells(bn: NetworkParts, name: str, rows: RowEvidence) -> npt.NDArray[Any]:
    """The cells of a node: a view."""
    compiled = bn.compiled
    return rows.codes[:, compiled.index[name]] if name in compiled.index else rows.reals[:, compiled.real_index[name]]


def is_seen(bn: NetworkParts, name: str, rows: RowEvidence) -> Bools:
    """The rows in which a node is observed."""
    own = cells(bn, name, rows)
    return np.asarray(own != NONE) if name in bn.compiled.index else ~np.isnan(own)


def present(bn: NetworkParts, columns: Sequence[str]) -> Mapping[str, Variable]:
    """The variables of a network that are columns of some rows. There must be one."""
    there = frozenset(columns)
    found = {n: v for n, v in bn.variables.items() if n in there}
    absent = {_bare(n): n for n in bn if n not in there}
    alike = {c: absent[_bare(c)] for c in columns if c not in bn and _bare(c) in absent}
    if not found:
        hint = f"; did you mean {next(iter(alike.values()))!r}?" if alike else ""
        hint = hint or next((h for c in columns if (h := nearest(c, bn))), "")
        raise DataError(
            f"the data have no column of the network: {listing(columns, 4)} are the columns, {listing(bn, 4)} the nodes{hint}"
        )
    if alike:
        said = [f"{column!r} (the node is {node!r})" for column, node in alike.items()]
        note(f"columns whose names are only nearly those of nodes are not looked at: {listing(said, 4, 'str')}")
    return found


def _bare(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum()) or name


def row_posterior(bn: NetworkParts, target: str, seen: RowEvidence) -> Array:
    """A line per row: the probabilities of the target's states, or its mean and variance; NaN where a row is impossible."""
    compiled = bn.compiled
    if compiled.of_tables:
        return in_rows.posterior_in_rows(compiled.network, compiled.index[target], seen.codes)
    if target not in compiled.index:
        return by_densities(bn, target, seen)
    direct, inferred = partial(direct_posterior, bn, target), partial(_infer_rows, bn, target)
    return _either(seen, direct_rows(bn, target, seen), direct, inferred)


def row_integrals(bn: NetworkParts, seen: RowEvidence, refused: NoFormula, target: str | None = None) -> RowIntegrals:
    """What answers over points, where there is no formula; the target's own cells do not matter. What is neither normal nor a
    count, and has children or is asked for, stays refused."""
    compiled, own = bn.compiled, RowEvidence(np.array(seen.codes, np.int32), np.array(seen.reals))
    if target is not None:
        cells(bn, target, own)[:] = NONE if target in compiled.index else np.nan
    states = {n: np.ascontiguousarray(own.codes[:, i]).view(np.uint32) for n, i in compiled.index.items()}
    numbers = {n: np.ascontiguousarray(own.reals[:, i]) for n, i in compiled.real_index.items()}
    lost = [n for n, x in numbers.items() if np.isnan(x).any()]
    curved = [n for n in lost if isinstance(bn.variables[n], NotNormal) or bn[n].is_open]
    for name in curved:
        variable = bn.variables[name]
        if not (isinstance(variable, NotNormal) and variable.whole) and (bn.dag.children(name) or name == target):
            raise refused
    if counts := [n for n in curved if bn.dag.children(n)]:
        note(f"{SUMMED}: {listing(counts)}")
    if under := {p for n in bn if bn[n].is_open for p in bn.dag.parents(n) if p in lost and p not in curved}:
        note(f"{INTEGRATED}: {listing(sorted(under))}")
    return RowIntegrals.of({n: bn[n] for n in bn}, bn.variables, Block({**states, **numbers}))


def _infer_rows(bn: NetworkParts, target: str, seen: RowEvidence) -> Array:
    """The states of a target by inference, in rows that leave other nodes to be summed out."""
    if bn.compiled.open:
        return by_densities(bn, target, seen)
    # Real nodes that are not observed are barren: none of them has finite children.
    finite = partial(in_rows.posterior_in_rows, bn.compiled.network, bn.compiled.index[target])
    return _either(seen, ~np.isnan(seen.reals).all(axis=1), partial(by_densities, bn, target), lambda some: finite(some.codes))


def by_densities(bn: NetworkParts, target: str, seen: RowEvidence) -> Array:
    """With the densities of numbers that are observed, and what regressions on them say. The target's own cells do not matter."""
    compiled = bn.compiled
    rows = RowEvidence(np.array(seen.codes, np.int64), np.array(seen.reals))
    cells(bn, target, rows)[:] = NONE if target in compiled.index else np.nan

    def answer(densities: Densities) -> Array:
        if target in compiled.index:
            return densities.posterior(compiled.index[target])
        if target in compiled.open:
            return densities.mixture(regression_moments(bn, target, densities.rows))
        return densities.moments(compiled.real_index[target])

    with refuse_by_name(bn):
        try:
            width = compiled.variables[target].n_states if target in compiled.index else len(MOMENTS)
            return in_parts(compiled.around_regressions, rows, partial(factors, bn, target=target), answer, width)
        except NotFinite as wrong:
            said = f"{target!r} is a {words(bn[target])} whose mean in some row is {wrong.mean:g}, which is none"
            raise ModelError(said) from None


def log_probs(bn: NetworkParts, seen: RowEvidence) -> Array:
    """ln p(observed cells) of each row."""
    if bn.compiled.open:
        return _log_densities(bn, seen)
    without = partial(in_rows.log_probs, bn.compiled.network)
    return _either(seen, ~np.isnan(seen.reals).all(axis=1), partial(_log_densities, bn), lambda some: without(some.codes))


def _log_densities(bn: NetworkParts, seen: RowEvidence) -> Array:
    with advising(lambda refused: f"fill in {listing(refused.lacking)} in rows that lack it, or leave such rows out"):
        try:
            with refuse_by_name(bn):
                each = partial(factors, bn)
                return in_parts(bn.compiled.around_regressions, seen, each, Densities.log_probs, 1, in_rows.PART)[:, 0]
        except NoFormula as refused:
            return row_integrals(bn, seen, refused).log_probs()


def _either(seen: RowEvidence, first: Bools, one: Callable[[RowEvidence], Array], other: Callable[[RowEvidence], Array]) -> Array:
    """Some rows in one way, the rest in another, in the order of the rows."""
    if first.all() or not first.any():
        return (one if len(first) and first.all() else other)(seen)
    answer = one(seen.take(np.flatnonzero(first)))
    result = np.empty((len(first), *answer.shape[1:]))
    result[first], result[~first] = answer, other(seen.take(np.flatnonzero(~first)))
    return result


@dataclass(frozen=True, eq=False)
class RowsLogLikelihood(Step[float]):
    """Σ ln p(observed cells) over the rows, each as often as its weight says."""

    bn: NetworkParts

    def of(self, block: Block) -> float:
        logs = self.each(block)
        if block.weight is None:
            return float(logs.sum())
        with np.errstate(invalid="ignore"):  # an impossible row of weight 0 is no row
            return float(np.where(block.weight > 0, block.weight * logs, 0.0).sum())

    def each(self, block: Block) -> Array:
        """ln p(observed cells) of each row."""
        columns = block.columns
        if any(n not in columns or is_missing(columns[n]).any() for n in self.bn):  # complete blocks need no inference
            return log_probs(self.bn, row_evidence(self.bn, block))
        result = np.zeros(block.n_rows)
        for name in self.bn:
            result += self.bn[name].log_prob(columns)
        return result


def log_prob_in_rows(bn: NetworkParts, data: Data) -> Array:
    """ln p(observed cells) of each row of data whose columns are nodes, read as the network's variables."""
    parts = list(data.map(RowsLogLikelihood(bn).each))
    if not parts:
        raise DataError("there are no rows")
    return np.concatenate(parts)


@one_blas_thread
def log_prob(bn: NetworkParts, rows: Any, unknown: Refuse | Missing = REFUSE) -> Array:
    """ln p(row) of each row, in the order of the rows; where cells are missing, ln p(the cells that are there); of a frame of
    Spark, the frame with a column for it."""
    if maps_frames(rows):
        return beside(rows, partial(_log_prob_of_table, bn, unknown), "log_prob")  # type: ignore[no-any-return]
    as_shown = checked_unknown(unknown) == Missing() or bn.hides_columns(rows)
    return log_prob_in_rows(bn, shown_rows(bn, rows, unknown) if as_shown else bn.rows(rows))


def _log_prob_of_table(bn: NetworkParts, unknown: Refuse | Missing, rows: Any) -> Array:
    return log_prob(bn, rows, unknown) if rows.num_rows else np.empty(0)  # an engine may try a step on a table without rows


@one_blas_thread
def log_likelihood(bn: NetworkParts, data: Any = None) -> float:
    """Σ ln p(row) over the data, from its statistics where these say all; without data, over what the network was fitted from."""
    if data is None:
        statistics = bn.summary()
        statistics.require_all_cells("the log-likelihood of rows")
        return float(sum(bn[n].log_likelihood_of_fit(statistics) for n in bn))
    if bn.hides_columns(data):
        rows = shown_rows(bn, data)
    elif bn.regressions and not bn.is_summed(data):
        rows = bn.rows(data)
    else:
        try:
            statistics = bn.summary(data)
        except MissingCells:
            rows = shown_rows(bn, data)
        else:
            statistics.require_all_cells("the log-likelihood of rows")
            return float(sum(bn[n].log_likelihood(statistics.answer(bn[n].needs)) for n in bn))
    complete = all(n in rows.columns for n in bn) and not any(rows.missing.values())
    return float(rows.fold(RowsLogLikelihood(bn), threads=None if complete else 1))  # the kernels have threads of their own


def shown_rows(bn: NetworkParts, data: Any, unknown: Refuse | Missing = REFUSE) -> Data:
    """The columns of the data that are nodes, read as the network's variables; nodes that are no columns are not observed."""
    opened = scan(data)
    variables = dict(present(bn, opened.columns))
    return opened.with_variables(variables, checked_unknown(unknown)).select(variables)


class Places:
    """How many rows there are of some kind, and where the first of them stands: the number of its block, and the row in it."""

    def __init__(self) -> None:
        self.n, self.first = 0, (0, 0)

    def add(self, number: int, rows: Ints) -> None:
        """Take note of rows of a block, in the order of the blocks."""
        if len(rows) and not self.n:
            self.first = number, int(rows[0])
        self.n += len(rows)

    def where(self, data: Data) -> str:
        """In words: the one row, or how many there are, and the first."""
        first = data.place(*self.first)
        return first if self.n == 1 else f"{self.n:,} rows, first {first}"


def tell_impossible(data: Data, rows: Places, consequence: str) -> None:
    """Say how many rows cannot occur under the network, if there are any."""
    if rows.n:
        which, _, first = rows.where(data).partition(", first ")
        note(f"the observed cells of {which} are impossible under the network{first and f', first {first}'}: {consequence}")


def direct_rows(bn: NetworkParts, target: str, seen: RowEvidence) -> Bools:
    """The rows in which every node but the target is observed or barren."""
    needed = _rows_needed(bn, seen, target)
    direct = (is_seen(bn, name, seen) | ~needed[name] for name in bn if name != target)
    return np.asarray(np.logical_and.reduce([np.ones(seen.n_rows, bool), *direct]))


def direct_posterior(bn: NetworkParts, target: str, seen: RowEvidence) -> Array:
    """p(target | the other cells), a line per row, of rows that `direct_rows` names; NaN where a row is impossible."""
    parts = -(-len(seen.codes) * bn.compiled.variables[target].n_states // PROBABILITIES)
    found = [_posterior(bn, target, seen.take(some)) for some in np.array_split(np.arange(len(seen.codes)), max(parts, 1))]
    return np.concatenate(found)


def _posterior(bn: NetworkParts, target: str, seen: RowEvidence) -> Array:
    n, n_states = len(seen.codes), bn.compiled.variables[target].n_states
    logs = np.zeros((n_states, n))
    columns = {name: np.ascontiguousarray(cells(bn, name, seen)) for name in bn}
    # Finite nodes first: where they leave a state of the target no probability, numbers need no parameters.
    for name in sorted(bn, key=lambda name: name not in bn.compiled.index):
        rows = np.arange(n) if name == target else np.flatnonzero(is_seen(bn, name, seen))
        family = (name, *bn[name].parents)
        for k in range(n_states) if target in family else (None,):
            possible = rows[(logs.max(axis=0) if k is None else logs[k])[rows] > -np.inf]
            own = {f: columns[f] if len(possible) == n else columns[f][possible] for f in family if f != target}
            with np.errstate(over="ignore"):  # a number far out has the density 0
                if k is None:
                    logs[:, possible[bn[name].log_prob(own) == -np.inf]] = -np.inf
                elif len(possible):
                    logs[k, possible] += bn[name].log_prob_at(target, k, own, len(possible))
    return shares(logs.T, (1,))


def factors(bn: NetworkParts, rows: RowEvidence, target: str | None = None) -> Iterator[RowFactor]:
    """What the open regressions add; the factor of a target that is a number is left to the caller."""
    for name, needed in _rows_needed(bn, rows, target).items() if bn.compiled.open else ():
        if not bn[name].is_open:
            continue
        some = np.flatnonzero(needed)
        numbers = [n for n in (name, *bn[name].parents) if n in bn.compiled.real_index and n != target]
        if target is not None and not all(is_seen(bn, n, rows)[some].all() for n in numbers):
            seen = np.array([is_seen(bn, n, rows)[some] for n in bn]).T
            matters = np.zeros(len(some), bool)  # where the observed cells do not cut the node off from the target
            for same in equal_lines(seen):
                observed = [n for n, known in zip(bn, seen[same[0]], strict=True) if known]
                matters[same] = name in requisite(bn.compiled, [target], observed)
            some = some[matters]
        if len(some):
            _refuse_hidden(bn, name, rows.take(some), target)
            if name != target or name in bn.compiled.index:
                yield from _factors(bn, name, rows, some)


def _rows_needed(bn: NetworkParts, rows: RowEvidence, target: str | None) -> dict[str, Bools]:
    """For each node the rows in which it is asked for, observed, or above such a one."""
    needed: dict[str, Bools] = {}
    for name in reversed(bn.dag.topological_order):
        own = np.full(len(rows.codes), name == target) | is_seen(bn, name, rows)
        needed[name] = np.logical_or.reduce([own, *(needed[c] for c in bn.dag.children(name))])
    return needed


def _refuse_hidden(bn: NetworkParts, name: str, rows: RowEvidence, target: str | None) -> None:
    """Refuse a regression on numbers that are not observed, and one that is a number, not observed, but has children."""
    cpd = bn[name]
    known = {p: 0.0 for p in cpd.real_parents if is_seen(bn, p, rows).all()}
    if len(known) < len(cpd.real_parents):
        raise no_formula(cpd, known)
    if name in bn.compiled.index or is_seen(bn, name, rows).all():
        return
    if name != target or _rows_needed(bn, rows, None)[name].any():
        raise no_formula(cpd, known)


def _factors(bn: NetworkParts, name: str, rows: RowEvidence, some: Ints) -> Iterator[RowFactor]:
    """ln p(y | parents) in some of the rows."""
    cpd = bn[name]
    spare = math.log(cpd.child.n_states) if isinstance(cpd.child, Finite) else 0.0
    for scope, own, columns, shape in _spread(bn, (name, *cpd.parents), rows, some):
        with np.errstate(over="ignore"):  # a number far out has the density 0
            logs = np.asarray(cpd.log_prob(columns)) + spare
        yield RowFactor(scope, own, logs.reshape(len(own), *shape))


def regression_moments(bn: NetworkParts, target: str, rows: RowEvidence) -> Iterator[TargetMoments]:
    """The mean and variance of a number that is an open regression: nothing below it is observed, its numbers are."""
    for scope, own, columns, shape in _spread(bn, bn[target].parents, rows, np.arange(rows.n_rows)):
        each = bn[target].moments(columns, len(own) * math.prod(shape))
        yield TargetMoments(scope, own, *(x.reshape(len(own), -1) for x in each))


def _spread(
    bn: NetworkParts, names: Sequence[str], rows: RowEvidence, some: Ints
) -> Iterator[tuple[tuple[int, ...], Ints, dict[str, Any], tuple[int, ...]]]:
    """Some of the rows in groups that show the same of the finite variables of a family: those that they do not show, the rows,
    columns in which every row stands once for each configuration of these, the last fastest, and how many states these have."""
    index = bn.compiled.index
    numbers = np.array(sorted(index[n] for n in names if n in index), np.int64)
    for same in equal_lines(rows.codes[some][:, numbers] != NONE):
        own = some[same]
        scope = tuple(int(v) for v in numbers if rows.codes[own[0], v] == NONE)
        shape = checked_shape(bn.compiled.around_regressions.network, scope)
        n, size = len(own), math.prod(shape)
        if n > 1 and n * size > CELLS:
            raise TooLarge(f"{n} rows of {size} configurations")
        digits = dict(zip(scope, np.unravel_index(np.arange(size), shape), strict=True)) if scope else {}
        shown = rows.take(own)
        columns = {
            name: np.tile(digits[v], n) if (v := index.get(name)) in digits else np.repeat(cells(bn, name, shown), size)
            for name in names
        }
        yield scope, own, columns, shape
