"""The numbers of a prior that a graph and complete rows choose, for use elsewhere: in EM, in a search, for other rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suffice.blas import one_blas_thread
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, listed, nearest
from suffice.families.empirical_bayes import EmpiricalBayes
from suffice.families.gathering import gather
from suffice.families.hierarchical import PartialPooling
from suffice.families.priors import Several, as_prior
from suffice.graphs import Dag
from suffice.learning.plates import Plate
from suffice.models.bayes_net import BayesNet
from suffice.models.estimated import free_nodes
from suffice.models.regressions import families_of
from suffice.models.sharing import agreeing, check_families, shared_in, shared_of
from suffice.statistics import Statistics


@one_blas_thread
def by_evidence(dag: Any, data: Any, prior: Any, *, shared: Any = None, families: Mapping[str, Any] | None = None) -> Any:
    """The prior with the strength, or other free numbers, that give this graph the largest evidence: what `fit` would choose.

    `prior` is a plain prior, such as `BDeu()` or `Dirichlet()`, whose number is chosen, or one that chooses by itself:
    `EmpiricalBayes(BDeu())`, `HierarchicalDirichlet()`, `LogisticNormal(variance=None)`; or several.

    `dag`, `data`, `shared` and `families` are those of `fit`: tied nodes, also those that a plate or a network brings, count
    once, by all that they have seen; regressions, and what a plate with `Partial()` pools, have no part in the choice.

    >>> from suffice.families.priors import Dirichlet
    >>> rows = {"x": list("aaaaaaaaab"), "y": list("uuuuuuuvvv")}
    >>> round(by_evidence("x -> y", rows, Dirichlet()).alpha, 3)
    1.029
    >>> round(by_evidence("x; y", {"x": list("aab"), "y": list("aaa")}, Dirichlet(), shared=[("x", "y")]).alpha, 3)
    1.394
    """
    choosing = _choosing(prior)
    graph, ties = shared_in(Dag(dag), shared_of(dag, shared))
    families = families_of(dag, families)
    check_families(ties, families)
    regressions = [n for n, family in (families or {}).items() if getattr(family, "iterative", False)]
    graph = Dag({n: () if n in regressions else graph.parents(n) for n in graph.nodes}) if regressions else graph
    statistics = agreeing(_summary(dag, graph, data), (*ties, *getattr(dag, "alike", ())))
    variables = {n: statistics.variables[n] for n in graph.nodes}
    asked: Any = dag.prior_with(choosing) if isinstance(dag, Plate) else choosing
    found = asked.choose(variables, free_nodes(graph, variables, statistics, ties, regressions), statistics)
    own = found.prior if isinstance(found, PartialPooling) else found
    # with ties the defaults of a prior come from what tied nodes have seen together: `fit` fills them in
    own = own if ties else own.bind(variables, statistics)
    return own if len(own.priors) > 1 else own.priors[0]


def _choosing(prior: Any) -> Several:
    asked = as_prior(prior)
    if asked is None:
        raise FitError("by_evidence needs the prior whose number is to be chosen: by_evidence(dag, data, BDeu())")
    parts = asked.priors if isinstance(asked, Several) else (asked,)
    return Several(tuple(part if part.chooses else EmpiricalBayes(part) for part in parts))


def _summary(dag: Any, graph: Dag, data: Any) -> Statistics:
    """What was seen of this graph, in the states of the network, if it is one."""
    if isinstance(data, Statistics):
        statistics = dag.summary(data) if isinstance(dag, BayesNet) else data
    else:
        statistics = gather(dag.rows(data) if isinstance(dag, BayesNet) else scan(data), graph)
    missing = [n for n in graph.nodes if n not in statistics.variables]
    if missing:
        known = statistics.variables
        raise DataError(f"the statistics do not speak of {listed(missing)}, which the graph names{nearest(missing[0], known)}")
    if not statistics.weight > 0:
        raise DataError("there are no rows to choose by")
    return statistics
