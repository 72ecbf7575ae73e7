"""Rows of a Markov network whose tree is too large, drawn by Gibbs sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import ModelError, listed, note
from suffice.inference.sampling.gibbs import GibbsState, Walker
from suffice.inference.sampling.sampling import checked_seed, whole_number
from suffice.libraries import pa
from suffice.models.rows.sampling import arrow_columns
from suffice.models.undirected.factor import network_of
from suffice.models.undirected.markov_parts import MarkovParts

if TYPE_CHECKING:
    import pyarrow as pa

BURN_IN, SPACING = 1000, 10
"""Sweeps over all variables before the first row, and from one row to the next."""


def gibbs_rows(net: MarkovParts, n: int, seed: int | None) -> pa.Table:
    """Rows that one chain comes by: nearly independent where it moves fast, and a note says that they need not be."""
    whole_number("the number of rows to draw must be", n, 0)
    rng = np.random.default_rng(None if seed is None else checked_seed(seed))
    zeros = [f.names for f in net.factors if not np.isfinite(f.log).all()]
    if zeros:
        raise ModelError(
            "rows cannot be drawn: the tree is too large, and a chain of single moves may not get around what the factor of "
            f"{listed(zeros[0])} rules out"
        )
    network = network_of(net.factors, net.variables)
    note(
        f"the tree is too large for independent rows: they are drawn by Gibbs sampling, one chain, {BURN_IN:,} sweeps before the "
        f"first row and {SPACING} between rows"
    )
    walker = Walker(network, free=range(network.n_variables), targets=())
    start = GibbsState(rng.integers(0, network.sizes), np.zeros(0))
    codes = walker.rows(start, n, rng, burn_in=BURN_IN if n else 0, spacing=SPACING)
    return pa.table(arrow_columns(net.variables, {name: codes[:, i] for i, name in enumerate(net.variables)}))
