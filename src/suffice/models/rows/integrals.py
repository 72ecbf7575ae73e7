"""Rows of which exact inference has no formula, answered over points and values (`incomplete.numbers.mixed`).

A missing number under a regression is integrated by quadrature, a missing count with children summed. What is neither normal nor
a count, and has children or is asked for, stays refused.
"""

from __future__ import annotations

import numpy as np

from suffice.engines.engine import Block
from suffice.errors import listing, note
from suffice.incomplete.numbers.mixed import RowIntegrals
from suffice.incomplete.numbers.patterns import INTEGRATED, SUMMED
from suffice.incomplete.rows import RowEvidence
from suffice.inference.finite.network import NONE, Array
from suffice.models.parts.closed_forms import NoFormula
from suffice.models.parts.network_parts import NetworkParts
from suffice.variables import NotNormal


def integrated_log_probs(bn: NetworkParts, seen: RowEvidence, refused: NoFormula) -> Array:
    """ln p(observed cells) of each row."""
    return _integrals(bn, seen, None, refused).log_probs()


def integrated_posterior(bn: NetworkParts, target: str, seen: RowEvidence, refused: NoFormula) -> Array:
    """The probabilities of the target's states, or its mean and variance; its own cells do not matter."""
    return _integrals(bn, seen, target, refused).posterior(target)


def _integrals(bn: NetworkParts, seen: RowEvidence, target: str | None, refused: NoFormula) -> RowIntegrals:
    compiled, own = bn.compiled, RowEvidence(np.array(seen.codes, np.int32), np.array(seen.reals))
    if target is not None:
        cells = own.codes[:, compiled.index[target]] if target in compiled.index else own.reals[:, compiled.real_index[target]]
        cells[:] = NONE if target in compiled.index else np.nan
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
    open_ones = [n for n in bn if bn[n].is_open]
    under = {p for n in open_ones for p in bn.dag.parents(n) if p in lost and p not in curved}
    if under:
        note(f"{INTEGRATED}: {listing(sorted(under))}")
    return RowIntegrals.of({n: bn[n] for n in bn}, bn.variables, Block({**states, **numbers}))
