"""Fit: from a graph and data, or statistics, to a network. And the score of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, overload

from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, MissingCells, listed, nearest, note
from suffice.families import family_of
from suffice.families.family import Estimate, Mean, Mode
from suffice.families.gathering import gather
from suffice.families.logistic import Logistic
from suffice.families.priors import as_prior
from suffice.graphs import Dag
from suffice.learning.incomplete import task_of
from suffice.learning.irls import fitted
from suffice.models.bayes_net import BayesNet, estimated
from suffice.scores import BIC
from suffice.statistics import Statistics


def fit(
    dag: Any, data: Any, *, prior: Any = None, estimate: Estimate | None = None, families: Mapping[str, Any] | None = None
) -> BayesNet:
    """The network of this graph that the data gives.

    `dag` is a `Dag` or anything that makes one, or a network, whose graph and states are taken; `data` is anything that
    `scan` takes, or `Statistics`, and then no rows are needed.

    Without a prior the parameters are the maximum likelihood estimates; with one they are posterior means, or modes with
    `estimate=Mode()`, and the posterior is kept for intervals. Several priors may speak for different nodes:
    `prior=(BDeu(1), NormalInverseGamma())`.

    Rows with missing cells are learned from by `em`, with its defaults, and a note says so; `bn.fit_info` has the details.

    >>> from suffice.families.priors import BDeu
    >>> bn = fit("rain -> wet", {"rain": ["no", "yes", "yes"], "wet": ["no", "yes", "yes"]}, prior=BDeu(1))
    >>> bn["wet"].probs.round(3)
    array([[0.833, 0.167],
           [0.1  , 0.9  ]])
    """
    how = Mean() if estimate is None else estimate
    if not isinstance(how, (Mean, Mode)):
        raise FitError(f"estimate is Mean() or Mode(), not {estimate!r}")
    rows = data if isinstance(data, Statistics) else scan(data)
    if families:
        return _with_regressions(dag, rows, as_prior(prior), how, families)
    try:
        seen = dag.summary(rows) if isinstance(dag, BayesNet) else gather(rows, dag)
    except MissingCells:
        return _from_incomplete(dag, rows, prior, how)
    return estimated(dag.dag if isinstance(dag, BayesNet) else Dag(dag), seen, as_prior(prior), how)


def _with_regressions(dag: Any, data: Any, prior: Any, how: Estimate, families: Mapping[str, Any]) -> BayesNet:
    """Nodes with families of their own are fitted from the rows, the others from statistics."""
    task = task_of(dag, data, prior=prior, estimate=how, families=families)
    if any(task.rows.missing.values()):
        return _from_incomplete(dag, data, prior, how, families)
    nodes = {n: (v, [task.variables[p] for p in task.dag.parents(n)]) for n, v in task.variables.items()}
    chosen = {n: families.get(n) or family_of(*node) for n, node in nodes.items()}
    statistics = task.rows.gather([family.needs(*nodes[n]) for n, family in chosen.items()])
    ready = {n: fitted(*nodes[n], task.rows, ridge=f.ridge) for n, f in chosen.items() if isinstance(f, Logistic)}
    return estimated(task.dag, statistics, task.prior, how, ready=ready)


def _from_incomplete(dag: Any, rows: Any, prior: Any, how: Estimate, families: Mapping[str, Any] | None = None) -> BayesNet:
    from suffice.learning.em import em

    run = em(dag, rows, prior=prior, estimate=how, families=families)
    note(f"there are missing cells: {run.model.fit_info}")
    return run.model


@overload
def score(dag: Any, data: Any, score: Any = ..., *, by_node: Literal[False] = ...) -> float: ...
@overload
def score(dag: Any, data: Any, score: Any = ..., *, by_node: Literal[True]) -> dict[str, float]: ...
def score(dag: Any, data: Any, score: Any = None, *, by_node: bool = False) -> float | dict[str, float]:
    """How well the graph accounts for the data: higher is better. `by_node=True` gives each node's part.

    >>> from suffice.scores import LogLikelihood
    >>> round(score("x", {"x": ["a", "b"]}, LogLikelihood()), 6)
    -1.386294
    """
    chosen = BIC() if score is None else score
    if isinstance(chosen, type) or not hasattr(chosen, "local"):
        raise FitError(f"a score is LogLikelihood(), AIC(), BIC() or Evidence(prior), not {score!r}")
    graph = Dag(dag)
    statistics = gather(data, graph)
    variables = statistics.variables
    missing = [n for n in graph.nodes if n not in variables]
    if missing:
        raise DataError(f"the statistics do not speak of {listed(missing)}{nearest(missing[0], variables)}")
    bound = chosen.bind({n: variables[n] for n in graph.nodes}, statistics)
    parts = {node: _local(graph, node, variables, statistics, bound) for node in graph.nodes}
    return parts if by_node else float(sum(parts.values()))


def _local(graph: Dag, node: str, variables: Any, statistics: Statistics, chosen: Any) -> float:
    child, parents = variables[node], [variables[p] for p in graph.parents(node)]
    family = family_of(child, parents)
    return float(chosen.local(family, child, parents, statistics.answer(family.needs(child, parents)), statistics.weight))
