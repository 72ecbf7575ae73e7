"""What a network expects of rows: entropy and Kullback–Leibler divergence, of data as the distribution of its rows, too; and BDe,
the prior that imagines rows drawn from a network (Heckerman, Geiger & Chickering 1995).

    H(p)      = − E_p[ln p]
    KL(p‖q)   = E_p[ln p] − E_p[ln q],    E_p[ln q] = Σᵢ E_p[ln q(xᵢ | parents of xᵢ in q)]

Each term is q's log-likelihood of what p expects of one row, so it needs only p's joint of one family of q. Maximum likelihood is
the q of a graph with the least KL(data‖q); `project` finds it for networks, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.basis.blas import one_blas_thread
from suffice.basis.variables import Finite, Variable, is_whole
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, ModelError, listing, nearest
from suffice.errors.remedies import WITH_BINS
from suffice.families.priors.priors import Prior
from suffice.families.protocol.family import Cpd
from suffice.models.networks import BayesNet
from suffice.models.questions.expected import Expected, closed_form, entropy_given_parents, marginal
from suffice.statistics import Counts

if TYPE_CHECKING:
    from suffice.basis.argument_types import RowsLike


@one_blas_thread
def entropy(x: BayesNet | RowsLike) -> float:
    """H in nats: of a network, exactly; of data, that of the distribution of its rows (no real columns).

    >>> round(entropy({"x": ["a", "b"]}), 6)
    0.693147
    """
    return x.entropy() if isinstance(x, BayesNet) else entropy_of_rows(x)


@one_blas_thread
def kl(p: BayesNet | RowsLike, q: BayesNet) -> float:
    """KL(p‖q) in nats, `p` a network or data; infinite where p can be what q rules out.

    >>> x = Finite("x", ["a", "b"])
    >>> p, q = BayesNet("x", {"x": [0.5, 0.5]}, [x]), BayesNet("x", {"x": [0.0, 1.0]}, [x])
    >>> kl(p, p), kl(p, q), kl(q, p)
    (0.0, inf, 0.6931471805599453)
    """
    if not isinstance(q, BayesNet):
        raise ModelError("the second argument of kl is a network")
    if not isinstance(p, BayesNet):
        rows = q.rows(p)
        return q.cross_entropy(rows) - entropy_of_rows(rows)
    if differing := sorted(set(p) ^ set(q)):
        raise ModelError(f"the two networks speak of different variables: {listing(differing)}")
    for name, v in p.variables.items():
        w = q.variables[name]
        if type(v) is not type(w) or (isinstance(v, Finite) and isinstance(w, Finite) and set(v.states) != set(w.states)):
            raise ModelError(f"the two networks differ in what {name!r} is: {v!r} and {w!r}")
    expected, total = Expected(p), 0.0
    for name in q:
        if p[name] is not q[name]:
            cpd: Cpd = closed_form(q[name])
            states = {v.name: v for v in (*cpd.parent_variables, cpd.child) if isinstance(v, Finite)}  # in q's order
            cross = -cpd.log_likelihood(expected.answer(cpd.needs).recoded(states))  # −E_p[ln q(x | parents)]
            if np.isinf(cross):
                return float("inf")
            total += cross - entropy_given_parents(p, name)
    return max(total, 0.0)


def entropy_of_rows(data: Any) -> float:
    """H(P̂) in nats, P̂ the distribution that gives each row its share of the weight; distinct rows are held."""
    rows = scan(data)
    number = next((n for n, v in rows.schema.items() if not isinstance(v, Finite) and not is_whole(v)), None)
    if number is not None:
        raise DataError(f"the entropy of rows needs columns without real numbers, and {number!r} is real; cut it {WITH_BINS}")
    rows.require_complete(rows.schema)
    return entropy_of_weights(rows.distinct().weights)


def entropy_of_weights(weights: npt.NDArray[np.float64]) -> float:
    """H in nats of the distribution that weights make, Σ w = W: ln W − Σ w ln w / W."""
    w = weights[weights > 0]
    if not len(w):
        raise DataError("there are no rows, and so no distribution of them")
    # Exact sums, as the order of the rows is that of their states, which one source of the data has otherwise than another.
    share = w / math.fsum(w.tolist())
    return -math.fsum((share * np.log(share)).tolist())


@dataclass(frozen=True)
class BDe(Prior):
    """`ess` imagined rows, spread over each table as the network `network` would. Score equivalent.

    >>> x = Finite("x", ["a", "b"])
    >>> BDe(BayesNet("x", {"x": [0.25, 0.75]}, [x]), ess=8).imagine(x, []).values
    array([2., 6.])
    """

    worth = "ess"
    types = ("BDe",)

    network: BayesNet
    ess: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.network, BayesNet):
            raise FitError("BDe needs the network whose rows it should imagine: BDe(bn, ess)")
        if not (np.isfinite(self.ess) and self.ess > 0):
            raise FitError(f"the equivalent sample size of BDe must be a positive number, not {self.ess!r}")

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Counts | None:
        family = [v for v in (*parents, child) if isinstance(v, Finite)]
        if len(family) != len(parents) + 1:
            return None
        for v in family:
            known = self.network.variables.get(v.name)
            if not isinstance(known, Finite):
                raise FitError(f"the prior network has no finite variable {v.name!r}{nearest(v.name, self.network)}")
            if set(known.states) != set(v.states):
                differing = sorted(set(known.states) ^ set(v.states))
                raise FitError(f"the prior network and the data differ in the states of {v.name!r}: {differing[:8]}")
        own = tuple(k for v in family if isinstance(k := self.network.variables[v.name], Finite))
        return Counts(own, self.ess * marginal(self.network, [v.name for v in family])).recoded({v.name: v for v in family})
