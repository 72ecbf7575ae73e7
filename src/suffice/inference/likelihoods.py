"""Likelihood evidence: p(what was seen | state) up to a factor, multiplied into the table of its variable."""

from __future__ import annotations

import numpy as np

from suffice.inference.network import HINTED, Array, Ints, Network, Soft


def with_likelihoods(network: Network, soft: Soft | None) -> Array:
    """The network's tables, those of variables with likelihood evidence multiplied by it."""
    if not soft:
        return network.tables
    return np.asarray(with_all_likelihoods(network, soft, network.tables[None])[0])


def with_all_likelihoods(network: Network, soft: Soft | None, tables: Array) -> Array:
    """The same for many settings of the tables, one a line."""
    if not soft:
        return tables
    tables = tables.copy()
    for v, likelihood in soft.items():
        f = int(network.own[v])
        part = tables[:, network.table_start[f] : network.table_start[f + 1]]
        part *= np.tile(likelihood, part.shape[1] // len(likelihood))
    return tables


def marked(codes: Ints, soft: Soft | None) -> Ints:
    """Codes in which unobserved variables with likelihood evidence are −2: they matter, even if nothing below them does."""
    if not soft:
        return codes
    result = codes.copy()
    hinted = [v for v in soft if codes[v] < 0]
    result[hinted] = HINTED
    return result
