"""Scores of regressions: their log-likelihood at the estimate, less the price of their parameters.

They have no evidence: the intercept has a flat prior, which has no normalising constant, and with it the evidence is known up to
a factor only, another one for each graph. BIC is what approximates it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, nearest
from suffice.graphs import Dag
from suffice.learning.incomplete import checked_families
from suffice.learning.irls import fitted
from suffice.models.bayes_net import BayesNet
from suffice.scores import Evidence
from suffice.statistics import Statistics


def regression_scores(dag: Any, data: Any, chosen: Any, families: Mapping[str, Any]) -> tuple[Any, dict[str, float]]:
    """The rows, and the score of each node that is a regression, by name. With a ridge it is at the estimate that this gives.

    >>> from suffice.families.responses import Linear
    >>> from suffice.scores import LogLikelihood
    >>> rows, parts = regression_scores("x -> y", {"x": [1, 2, 3.0], "y": [1, 3, 2.0]}, LogLikelihood(), {"y": Linear()})
    >>> {name: round(part, 6) for name, part in parts.items()}
    {'y': -3.217095}
    """
    graph = Dag(dag)
    if isinstance(data, Statistics):
        raise FitError(f"{next(iter(families))!r} has a family of its own, which is scored from rows: statistics are not enough")
    rows = dag.rows(data) if isinstance(dag, BayesNet) else scan(data)
    for node in graph.nodes:
        if node not in rows.columns:
            raise DataError(f"the data has no column {node!r}, which the graph names{nearest(node, rows.columns)}")
    rows = rows.select(graph.nodes)
    rows.require_complete(graph.nodes)
    variables = rows.schema
    checked_families(families, graph, variables)
    iterative = {n: f for n, f in families.items() if getattr(f, "iterative", False)}
    if iterative and (isinstance(chosen, Evidence) or not hasattr(chosen, "price")):
        raise FitError(
            f"{next(iter(iterative))!r} is a regression, and the flat prior of its intercept gives it no evidence: score it with "
            "BIC(), which approximates that"
        )
    parts = {}
    for name, family in iterative.items():
        child, parents = variables[name], [variables[p] for p in graph.parents(name)]
        fit = fitted(child, parents, rows, family).fitted
        parts[name] = float(fit.log_likelihood - chosen.price(rows.weight) * family.n_parameters(child, parents))
    return rows, parts
