"""What is known of finite variables besides codes, multiplied into a network: likelihoods of states, densities of real evidence.

Such factors come as logarithms, and may differ by more than floats hold, e^±10000 between configurations, and another one the
other way. So they are scaled to at most 1, and where floats would not hold them all the same, their logs are kept for `logs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from suffice.inference.log_domain import LogFactor, absorbed
from suffice.inference.network import HINTED, NONE, Array, Ints, Network, Soft

SMALLEST = 1e-290
"""Products below this lose digits, or vanish."""

SAFE = -300.0
"""An answer whose ln p(evidence) came out above this, all factors at most 1, has lost nothing that matters to underflow."""

NEVER = float("-inf")


class Weighed(NamedTuple):
    """A network whose tables have factors in them, codes that tell of it, and ln of what was divided out of the factors.

    `logs` are those of the tables, where floats do not hold them.
    """

    network: Network
    tables: Array
    codes: Ints
    log_scale: float
    logs: Array | None = None

    def is_sure(self, log_prob: float) -> bool:
        """Whether what underflowed cannot matter to an answer with this ln p(evidence)."""
        return self.logs is None or log_prob > SAFE

    @property
    def log_tables(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self.tables) if self.logs is None else self.logs


def likelihood_factors(soft: Soft) -> list[LogFactor]:
    """Likelihood evidence, p(what was seen | state) up to a factor, as factors."""
    if not soft:
        return []
    with np.errstate(divide="ignore"):
        return [LogFactor((v,), np.log(np.asarray(likelihood, np.float64))[None]) for v, likelihood in soft.items()]


def weighed(network: Network, codes: Ints, factors: Sequence[LogFactor]) -> Weighed:
    """Factors of one variable as part of its table, if no product might vanish; others as factors of a larger network.

    Unobserved variables with changed tables get the code `HINTED`: they matter, even if nothing below them does. Where a factor
    is 0 everywhere, the scale is −inf.

    >>> net = Network.of([2], [((0,), 0, np.array([0.25, 0.75]))])
    >>> weighed(net, np.array([-1]), likelihood_factors({0: np.array([0.5, 0.1])})).tables
    array([0.25, 0.15])
    """
    scale, tables, seen = 0.0, network.tables, codes
    if not factors:
        return Weighed(network, tables, seen, scale)
    more: list[tuple[tuple[int, ...], Array]] = []
    for scope, values in absorbed(factors):
        top = float(values.max())
        scale += top
        if top == NEVER:
            return Weighed(network, tables, seen, NEVER)
        logs = values[0] - top
        if len(scope) == 1 and _fits(network, scope[0], logs):
            tables, seen = (tables.copy(), seen.copy()) if tables is network.tables else (tables, seen)
            f = int(network.own[scope[0]])
            tables[network.table_start[f] : network.table_start[f + 1]].reshape(-1, len(logs))[:] *= np.exp(logs)
            seen[scope[0]] = HINTED if seen[scope[0]] < 0 else seen[scope[0]]
        elif scope:
            more.append((scope, logs))
    if not more:
        return Weighed(network, tables, seen, scale)
    wider = network.with_factors((scope, NONE, np.exp(logs)) for scope, logs in more)
    whole = Weighed(wider, np.concatenate([tables, wider.tables[len(tables) :]]), seen, scale)
    if all(np.exp(logs.min(where=logs > NEVER, initial=0.0)) > SMALLEST for _, logs in more):
        return whole
    kept = whole.log_tables[: len(tables)]
    return whole._replace(logs=np.concatenate([kept, *(logs.reshape(-1) for _, logs in more)]))


def _fits(network: Network, v: int, logs: Array) -> bool:
    """Whether the table of a variable can take in a factor without a product that vanishes."""
    if network.own[v] < 0:
        return False
    table = network.table(int(network.own[v]))
    return float(table[table > 0.0].min() * np.exp(logs.min(where=logs > NEVER, initial=0.0))) > SMALLEST
