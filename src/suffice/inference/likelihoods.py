"""Likelihood evidence: p(what was seen | state) up to a factor, multiplied into the table of its variable."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from suffice.inference.network import HINTED, NONE, Array, Ints, Network, Soft

SMALLEST = 1e-290
"""Products below this lose digits, or vanish."""
PIECE, MAX_PIECES = 600.0, 100
"""ln of the ratio that one factor may hold, and factors that are made of one at most: below e^−60,000 a number may be 0."""


class Weighed(NamedTuple):
    """A network whose tables have likelihood evidence in them, codes that tell of it, and ln of what was divided out of it."""

    network: Network
    tables: Array
    codes: Ints
    log_scale: float


def weighed(network: Network, codes: Ints, soft: Soft | None) -> Weighed:
    """Likelihoods, scaled to a largest of 1, as part of the tables; as factors of their own where products might vanish.

    Unobserved variables with likelihoods get the code `HINTED`: they matter, even if nothing below them does.

    >>> net = Network.of([2], [((0,), 0, np.array([0.25, 0.75]))])
    >>> weighed(net, np.array([-1]), {0: np.array([0.5, 0.1])}).tables
    array([0.25, 0.15])
    """
    if not soft:
        return Weighed(network, network.tables, codes, 0.0)
    log_scale = float(sum(np.log(np.max(likelihood)) for likelihood in soft.values()))
    with np.errstate(divide="ignore"):
        pieces = {v: in_pieces(np.log(likelihood) - np.log(np.max(likelihood))) for v, likelihood in soft.items()}
    seen = codes.copy()
    seen[[v for v in soft if codes[v] < 0]] = HINTED
    if any(len(p) > 1 or _least(network.table(int(network.own[v]))) * _least(p[0]) < SMALLEST for v, p in pieces.items()):
        more = network.with_factors([((v,), NONE, piece) for v, p in pieces.items() for piece in p])
        return Weighed(more, more.tables, seen, log_scale)
    tables = network.tables.copy()
    for v, [likelihood] in pieces.items():
        f = int(network.own[v])
        part = tables[network.table_start[f] : network.table_start[f + 1]].reshape(-1, len(likelihood))
        part *= likelihood
    return Weighed(network, tables, seen, log_scale)


def in_pieces(logs: Array) -> list[Array]:
    """Numbers up to 1 by their logs; where they differ by more than floats hold, as equal factors whose product they are.

    >>> [p.tolist() for p in in_pieces(np.array([0.0, -np.inf]))], len(in_pieces(np.array([0.0, -1000.0])))
    ([[1.0, 0.0]], 2)
    """
    span = -float(np.min(logs, where=np.isfinite(logs), initial=0.0))
    k = min(MAX_PIECES, max(1, math.ceil(span / PIECE)))
    return [np.exp(logs / k)] * k


def _least(values: Array) -> float:
    """The smallest number that is not 0."""
    return float(values[values > 0.0].min())
