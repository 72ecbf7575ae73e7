"""Missing cells drawn together in networks with open regressions: node by node, so that each has a formula given those before.

First come the finite nodes with no number above them, then all others, parents before children. A number is drawn by its
normal posterior, which it has where the finite parents of all numbers that tell of it are known by then; an open regression by
its own distribution, where nothing below it is observed. What is left over is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from suffice.errors import ModelError
from suffice.inference.network import Array
from suffice.models.completions import Gaps, numbers_of, picked, shared_posterior
from suffice.models.regression_rows import is_seen
from suffice.models.regressions import is_open, quantiles
from suffice.models.row_evidence import RowEvidence
from suffice.variables import Finite

if TYPE_CHECKING:
    from suffice.models.bayes_net import BayesNet

Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


def complete_beside_regressions(bn: BayesNet, rows: RowEvidence, gaps: Gaps, origin: Ints, uniforms: Array) -> Flags:
    """Draw into the gaps of rows, in place; which rows are impossible, whose gaps stay. As `completions.complete`."""
    compiled, place = bn.compiled, {n: i for i, n in enumerate(bn)}
    impossible = np.zeros(len(rows.codes), bool)
    for name in _order(bn):
        v = compiled.index.get(name)
        missing = ~is_seen(bn, name, rows) & ~impossible
        wanted = missing if _is_mixing(bn, name) else missing & _gaps(bn, name, gaps)
        some = np.flatnonzero(wanted)
        if not len(some):
            continue
        answer = shared_posterior(bn, name, rows, some, origin)
        impossible[some[np.isnan(answer[:, 0])]] = True
        if v is not None:
            rows.codes[some, v] = picked(answer, uniforms[some, place[name]])
        else:
            rows.reals[some, compiled.real_index[name]] = _drawn(bn, name, rows, some, answer, uniforms[some, place[name]])
    rows.codes[impossible[:, None] & gaps.finite] = -1
    rows.reals[impossible[:, None] & gaps.reals] = np.nan
    return impossible


def _order(bn: BayesNet) -> list[str]:
    first = [n for n in bn.dag.topological_order if _is_above_numbers(bn, n)]
    return [*first, *(n for n in bn.dag.topological_order if n not in first)]


def _is_above_numbers(bn: BayesNet, name: str) -> bool:
    finite = isinstance(bn.variables[name], Finite)
    return finite and all(isinstance(bn.variables[a], Finite) for a in bn.dag.ancestors(name))


def _is_mixing(bn: BayesNet, name: str) -> bool:
    """Whether numbers are mixtures over this node: it is drawn even if it is no column."""
    return _is_above_numbers(bn, name) and any(not isinstance(bn.variables[c], Finite) for c in bn.dag.children(name))


def _gaps(bn: BayesNet, name: str, gaps: Gaps) -> Flags:
    compiled = bn.compiled
    if name in compiled.index:
        return gaps.finite[:, compiled.index[name]]
    return gaps.reals[:, compiled.real_index[name]]


def _drawn(bn: BayesNet, name: str, rows: RowEvidence, some: Ints, moments: Array, uniforms: Array) -> Array:
    """Numbers by their posterior."""
    own = rows.take(some)
    cpd, fine = bn[name], ~np.isnan(moments[:, 0])
    if not is_open(cpd):
        _refuse_mixture(bn, name, own)
        return numbers_of(moments, uniforms, name in bn.compiled.counts)
    for v in cpd.finite_parents:
        if not is_seen(bn, v.name, own).all():
            raise _is_mixture(name, v.name)
    columns = {p: _column(bn, p, own)[fine] for p in cpd.parents}
    result = np.full(len(some), np.nan)
    result[fine] = quantiles(cpd, columns, uniforms[fine])
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


def _column(bn: BayesNet, name: str, rows: RowEvidence) -> npt.NDArray[np.float64]:
    compiled = bn.compiled
    if name in compiled.index:
        return rows.codes[:, compiled.index[name]].astype(np.int64)
    return rows.reals[:, compiled.real_index[name]]
