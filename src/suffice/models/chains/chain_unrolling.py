"""The network of some steps of a chain, in which every step has variables of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from suffice.engines.sequences.lagged import rename
from suffice.families.protocol.family import Cpd
from suffice.graphs.lagged import unrolled_name, variable_and_lag
from suffice.models.chains.chain_parts import ChainParts
from suffice.models.chains.chain_reading import refuse_diffuse
from suffice.models.networks import BayesNet
from suffice.variables import Variable


def network_of_steps(chain: ChainParts, n: int) -> BayesNet:
    """The network of n steps, over `x[0]`, `x[1]`, …"""
    refuse_diffuse(chain, "be unrolled into a network")
    dag, first = chain.template.unroll(n), chain.first
    own = {unrolled_name(x, t): rename(v, unrolled_name(x, t)) for x, v in chain.variables.items() for t in range(n)}
    cpds = {}
    for t in range(n):
        for x in chain.template.nodes:
            cpd = first[t][x] if t < len(first) else chain[x]
            names = {p: unrolled_name(b, t - k) for p in cpd.parents for b, k in [variable_and_lag(p)]}
            cpds[unrolled_name(x, t)] = _under(cpd, own, unrolled_name(x, t), names)
    return BayesNet.of(dag, own, cpds, fit_info=f"{n} steps of a chain {chain.fit_info}")


def _under(cpd: Any, variables: Mapping[str, Variable], name: str, parents: Mapping[str, str]) -> Cpd:
    """A distribution with its child and parents under other names."""
    own: dict[str, Any] = {"child": variables[name], "parent_variables": tuple(variables[parents[p]] for p in cpd.parents)}
    renamed_cpd: Cpd = replace(cpd, **own) if cpd.is_regression else replace(cpd, **own, seen=None, imagined=None)
    return renamed_cpd
