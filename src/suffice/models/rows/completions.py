"""The missing cells of rows filled in: each by what is most probable, all of a row together, or by draws of all of them.

Draws go node by node, each from its exact posterior given the cells drawn before, so what is drawn is exact, too; copies of a row
that are still equal share an inference. Every way fills in place and says which rows are impossible: their gaps stay.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.errors import ModelError
from suffice.inference.fill import best, fill_by_draws, fill_each, fill_together, picked
from suffice.inference.network import NONE, Array
from suffice.inference.rows import RowEvidence, keys_of
from suffice.models.regressions import is_open, reduced
from suffice.models.rows.evidence import column, is_seen
from suffice.models.rows.posteriors import row_posterior
from suffice.variables import Finite

if TYPE_CHECKING:
    from suffice.models.bayes_net import BayesNet

Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


class Gaps(NamedTuple):
    """Which cells are missing and to be filled: a line per row, a column per finite and per real node."""

    finite: Flags
    reals: Flags

    @classmethod
    def of(cls, bn: BayesNet, names: Collection[str], seen: RowEvidence) -> Gaps:
        """The cells of these columns that are not observed; nodes that are no columns have no cells."""
        compiled = bn.compiled
        finite, reals = ([n in names for n in nodes] for nodes in (compiled.finite, compiled.reals))
        return cls((seen.codes == NONE) & np.array(finite, bool), np.isnan(seen.reals) & np.array(reals, bool))

    @property
    def any(self) -> Flags:
        return np.asarray(self.finite.any(axis=1) | self.reals.any(axis=1))

    def take(self, rows: Ints) -> Gaps:
        return Gaps(self.finite[rows], self.reals[rows])

    def at(self, bn: BayesNet, name: str) -> Flags:
        """The rows that have a gap in a column."""
        compiled = bn.compiled
        return self.finite[:, compiled.index[name]] if name in compiled.index else self.reals[:, compiled.real_index[name]]


def most_probable_each(bn: BayesNet, rows: RowEvidence, gaps: Gaps) -> Flags:
    """Every gap by itself: its most probable state, or its mean."""
    compiled = bn.compiled
    if not compiled.reals:
        return fill_each(compiled.network, rows.codes, gaps.finite)
    seen, impossible = RowEvidence(*(cells.copy() for cells in rows)), np.zeros(rows.n_rows, bool)
    for name in bn:
        some = np.flatnonzero(gaps.at(bn, name))
        if len(some):
            answer = row_posterior(bn, name, seen.take(some))
            impossible[some[np.isnan(answer[:, 0])]] = True
            _put(bn, name, rows, some, best(answer) if name in compiled.index else answer[:, 0])
    return impossible


def most_probable_together(bn: BayesNet, rows: RowEvidence, gaps: Gaps, names: Collection[str]) -> Flags:
    """All gaps of a row at once, all columns being finite; regressions on numbers, which are no columns, must be barren."""
    return fill_together(reduced(bn, names).compiled.network, rows.codes, gaps.finite)


def draw_together(bn: BayesNet, rows: RowEvidence, gaps: Gaps, origin: Ints, uniforms: Array) -> Flags:
    """All gaps of a row drawn from their posterior.

    `origin` is equal for rows that are copies of one another; `uniforms` has a column per node, in the order of `bn`. First come
    the finite parents of real nodes (also those that are no columns: what hangs on them would not be Gaussian otherwise), then
    the other finite variables, of which the real ones tell no more, and then the real ones, each Gaussian given what is before.

    With open regressions it is first the finite nodes with no number above them, then all others, parents before children. A
    number is drawn by its normal posterior, which it has where the finite parents of all numbers that tell of it are known by
    then; an open regression by its own distribution, where nothing below it is observed. What is left over is refused.
    """
    compiled, order = bn.compiled, {n: i for i, n in enumerate(bn)}
    impossible = np.zeros(rows.n_rows, bool)

    def draw(name: str, wanted: Flags) -> None:
        some = np.flatnonzero(wanted & ~is_seen(bn, name, rows) & ~impossible)
        if len(some):
            answer, own = _shared_posterior(bn, name, rows, some, origin), uniforms[some, order[name]]
            impossible[some[np.isnan(answer[:, 0])]] = True
            drawn = picked(answer, own) if name in compiled.index else _numbers(bn, name, rows.take(some), answer, own)
            _put(bn, name, rows, some, drawn)

    above = [n for n in bn.dag.topological_order if _is_above_numbers(bn, n)]
    for name in above if compiled.open else [n for n in compiled.finite if _is_mixing(bn, n)]:
        draw(name, ~impossible if _is_mixing(bn, name) else gaps.at(bn, name))
    if not compiled.open:
        left = gaps.finite & ~impossible[:, None] & (rows.codes == NONE)
        impossible |= fill_by_draws(compiled.network, rows.codes, left, uniforms[:, [order[n] for n in compiled.finite]])
    for name in [n for n in bn.dag.topological_order if n not in above] if compiled.open else compiled.reals:
        draw(name, gaps.at(bn, name))
    rows.codes[impossible[:, None] & gaps.finite] = NONE
    rows.reals[impossible[:, None] & gaps.reals] = np.nan
    return impossible


def _put(bn: BayesNet, name: str, rows: RowEvidence, some: Ints, cells: npt.NDArray[np.generic]) -> None:
    compiled = bn.compiled
    if name in compiled.index:
        rows.codes[some, compiled.index[name]] = cells
    else:
        rows.reals[some, compiled.real_index[name]] = cells


def _is_above_numbers(bn: BayesNet, name: str) -> bool:
    return all(isinstance(bn.variables[n], Finite) for n in (name, *bn.dag.ancestors(name)))


def _is_mixing(bn: BayesNet, name: str) -> bool:
    """Whether numbers are mixtures over this node: it is drawn even if it is no column."""
    return _is_above_numbers(bn, name) and any(not isinstance(bn.variables[c], Finite) for c in bn.dag.children(name))


def _shared_posterior(bn: BayesNet, name: str, rows: RowEvidence, some: Ints, origin: Ints) -> Array:
    """The posterior of a node in some of the rows; copies of a row that are still equal are asked about once."""
    numbers = rows.reals[some].view(np.int64).reshape(len(some), rows.reals.shape[1])
    keys = keys_of(np.concatenate([origin[some, None], rows.codes[some].astype(np.int64), numbers], axis=1))
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return np.asarray(row_posterior(bn, name, rows.take(some[first]))[which])


def _numbers(bn: BayesNet, name: str, rows: RowEvidence, moments: Array, uniforms: Array) -> Array:
    """Real cells by their means and variances, counts, whose finite parents are known by now, by their rates."""
    from scipy.special import ndtri
    from scipy.stats import poisson

    cpd, (mean, variance) = bn[name], moments.T
    if is_open(cpd):
        return _regressed(bn, name, rows, ~np.isnan(mean), uniforms)
    if bn.compiled.open:
        _refuse_mixture(bn, name, rows)
    if name in bn.compiled.counts:
        return np.asarray(poisson.ppf(uniforms, mean))
    return np.asarray(mean + np.sqrt(variance) * ndtri(uniforms))


def _regressed(bn: BayesNet, name: str, rows: RowEvidence, fine: Flags, uniforms: Array) -> Array:
    """Numbers by the distribution of an open regression."""
    cpd = bn[name]
    for v in cpd.finite_parents:
        if not is_seen(bn, v.name, rows).all():
            raise _is_mixture(name, v.name)
    result = np.full(rows.n_rows, np.nan)
    result[fine] = cpd.quantiles({p: column(bn, p, rows)[fine] for p in cpd.parents}, uniforms[fine])
    return result


def _refuse_mixture(bn: BayesNet, name: str, rows: RowEvidence) -> None:
    """Refuse a number whose posterior may be a mixture: a finite parent of it, or of a number that tells of it, is not known."""
    below = [n for n in bn if name in bn.dag.ancestors(n) and is_seen(bn, n, rows).any()]
    around = {name, *below}.union(*(bn.dag.ancestors(n) for n in (name, *below)))
    numbers = [n for n in around if not isinstance(bn.variables[n], Finite)]
    telling = [n for n in numbers if n in (name, *below) or not is_seen(bn, n, rows).all()]
    for parent in (v.name for n in sorted(telling) for v in bn[n].finite_parents):
        if not is_seen(bn, parent, rows).all():
            raise _is_mixture(name, parent)


def _is_mixture(name: str, parent: str) -> ModelError:
    return ModelError(
        f"the missing cells of {name!r} cannot be drawn exactly: they are a mixture over {parent!r}, which is not observed in "
        "some row; fill them by their means, without draws, or give that column"
    )
