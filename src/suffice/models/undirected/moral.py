"""A Bayesian network of tables as a Markov network on its moral graph."""

from __future__ import annotations

import numpy as np

from suffice.errors import ModelError, listed
from suffice.models.parts.closed_forms import closed
from suffice.models.parts.network_parts import NetworkParts
from suffice.models.undirected.factor import Factor
from suffice.models.undirected.log_linear import LogLinear
from suffice.models.undirected.markov_parts import SomeMarkov
from suffice.variables import Finite


def moral_net(kind: type[SomeMarkov], bn: NetworkParts) -> SomeMarkov:
    """A network of tables as a Markov network on its moral graph: the same distribution, a factor for each node."""
    variables = {n: v for n, v in bn.variables.items() if isinstance(v, Finite)}
    if len(variables) < len(bn.variables):
        numbers = [n for n in bn.variables if n not in variables]
        raise ModelError(f"{listed(numbers)} is not finite, and this is for networks of tables: bn.dag.moral() has the graph")
    factors = []
    for name in bn:
        cpd = closed(bn[name])
        with np.errstate(divide="ignore"):
            factors.append(Factor((*(variables[p] for p in cpd.parents), variables[name]), np.log(cpd.probs)))
    model = LogLinear(bn.dag.moral().cliques())
    return kind.of(variables, factors, model=model, log_normaliser=0.0, fit_info=f"from a BayesNet ({bn.fit_info})")
