"""From statistics and a prior to a network: the one place where parameters are learned."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from suffice.errors import DataError, listing, nearest, note, quantity
from suffice.families import family_of
from suffice.families.priors.priors import Node, Prior
from suffice.families.protocol.family import Cpd, Estimate
from suffice.graphs import Dag
from suffice.models.parts.network_parts import SomeNetwork
from suffice.models.parts.sharing import Tie, agreeing, seen_together, shared_in, shared_in_words, tied_prior
from suffice.statistics import Statistics
from suffice.variables import Variable


def estimate_network(
    kind: type[SomeNetwork],
    dag: Dag,
    statistics: Statistics,
    prior: Prior | None,
    how: Estimate,
    *,
    bound: bool = False,
    ready: Mapping[str, Cpd] | None = None,
    shared: Any = (),
) -> SomeNetwork:
    """The network that statistics, a prior and a choice of point values make: the one place where parameters are learned.

    `ready` has distributions of iterative families, which statistics cannot give; `shared` has groups of nodes that share one
    parameter set.
    """
    dag, ties = shared_in(dag, shared) if shared else (dag, ())
    known = statistics.variables
    missing = [n for n in dag.nodes if n not in known]
    if missing:
        raise DataError(f"the statistics do not speak of {listing(missing)}, which the graph names{nearest(missing[0], known)}")
    if not statistics.weight > 0:
        raise DataError("there are no rows to learn from")
    if ties:
        statistics = agreeing(statistics, ties)
        known = statistics.variables
    plain = [tie for tie in ties if tie.nodes[0] not in (ready or {})]
    variables = {n: known[n] for n in dag.nodes}
    if prior is not None and not bound:
        prior = prior.choose(variables, free_nodes(dag, variables, statistics, plain, ready or ()), statistics)
        prior = (tied_prior(prior, tuple(plain)) if plain else prior).bind(variables, statistics)
    together = seen_together(plain, statistics, variables) if plain else {}
    nodes_and_parents = {n: (variables[n], [variables[p] for p in dag.parents(n)]) for n in dag.nodes}
    cpds, unspoken = estimated_nodes(nodes_and_parents, statistics, prior, how, ready or {}, together)
    by = "maximum likelihood" if len(unspoken) == len(cpds) or prior is None else f"posterior {type(how).__name__.lower()}"
    info = f"fitted from {quantity(statistics.weight, 'row')}, {by}{shared_in_words(ties) if ties else ''}"
    if statistics.suppression is not None:
        info += f"; {statistics.suppression.in_words()}"
        note(f"{statistics.suppression.in_words()}: the parameters are those of the cells that are left")
    return kind.of(dag, variables, cpds, statistics=statistics, prior=prior, estimate=how, fit_info=info, ties=ties)


def estimated_nodes(
    nodes: Mapping[str, tuple[Variable, Sequence[Variable]]],
    statistics: Statistics,
    prior: Prior | None,
    how: Estimate,
    ready: Mapping[str, Cpd],
    together: Mapping[str, Any],
) -> tuple[dict[str, Cpd], list[str]]:
    """The distribution of each node, child and parents, that statistics and a bound prior give; and the nodes that the prior says
    nothing about, which is noted. `together` has what tied nodes have seen."""
    cpds: dict[str, Cpd] = {}
    unspoken: list[str] = []
    for name, (child, parents) in nodes.items():
        if name in ready:
            cpds[name] = ready[name]
            unspoken += [name] if prior is not None else []
            continue
        family = family_of(child, parents)
        imagined = None if prior is None else prior.imagine(child, parents)
        if prior is not None and imagined is None:
            unspoken.append(name)
        seen = together[name] if name in together else statistics.answer(family.needs(child, parents))
        cpds[name] = family.estimate(child, parents, seen, imagined, how)
    if unspoken:
        note(f"the prior says nothing about {listing(unspoken)}: fitted by maximum likelihood")
    return cpds, unspoken


def free_nodes(
    dag: Dag, variables: Mapping[str, Variable], statistics: Statistics, ties: Sequence[Tie], ready: Container[str] = ()
) -> Iterator[Node]:
    """The nodes by which a prior may choose its numbers, with what was seen of each; of a tie its first node, with all it saw."""
    statistics.require_all_cells("a prior that is chosen by its evidence")
    together = seen_together(ties, statistics, variables)
    again = {node for tie in ties for node in tie.nodes[1:]}
    for name in dag.nodes:
        if name not in again and name not in ready:
            child, parents = variables[name], [variables[p] for p in dag.parents(name)]
            seen = together[name] if name in together else statistics.answer(family_of(child, parents).needs(child, parents))
            yield child, parents, seen


def replace_cpds(bn: SomeNetwork, dag: Dag, cpds: Mapping[str, Cpd], ties: Sequence[Tie] = ()) -> SomeNetwork:
    """A network learned from incomplete rows with some of its distributions, and their edges, put in the place of others."""
    kept = {n: cpds.get(n) or bn[n] for n in dag.nodes}
    info = f"{bn.fit_info} with {listing(list(cpds))} as if without parents, whose regression was fitted by itself"
    options: dict[str, Any] = {"prior": bn.prior, "estimate": bn.estimate, "fit_info": info, "hidden": bn.hidden}
    left = [n for n in kept if n not in cpds]  # a complete family shares no missing cell, and its parameters depend on no others
    options |= {"incomplete": bn.incomplete, "ties": (*bn.ties, *ties), "covariance": bn.covariance_of(left)}
    return bn.of(dag, dict(bn.variables), kept, **options)
