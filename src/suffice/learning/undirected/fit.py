"""The way in for undirected models: what `fit` is given, checked, as a problem for an objective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.basis.iteration import OutOfTime, Stopped
from suffice.basis.limits import COPIES, NO_LIMITS, Budget, check_room
from suffice.basis.variables import Real
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, listing, nearest
from suffice.errors.remedies import CONTRASTIVE, LASSO, MAX_ENTROPY, argument
from suffice.families.gathering import complete_rows
from suffice.families.priors.priors import as_prior
from suffice.graphs import Graph
from suffice.learning.principles import FEATURES, NUMBERS, TABLES, prior_of
from suffice.learning.undirected.problem import UndirectedProblem
from suffice.models.gaussian_markov_net import GaussianMarkovNet, fit_gaussian
from suffice.models.networks import MarkovNet
from suffice.models.undirected.features import Features, is_undirected, undirected_model
from suffice.models.undirected.log_linear import LogLinear
from suffice.objectives.principles import Bayes, Conditional, ContrastiveDivergence, Likelihood, MaxEntropy, as_penalties
from suffice.objectives.scores import Evidence
from suffice.statistics import Moments, Statistics
from suffice.statistics.counts import n_configurations


def fit_undirected(
    model: Any,
    data: Any,
    *,
    objective: Any = None,
    penalty: Any = None,
    method: Any = None,
    prior: Any = None,
    base: MarkovNet | None = None,
    budget: Budget = NO_LIMITS,
) -> MarkovNet | GaussianMarkovNet:
    """The `MarkovNet` of a `Graph`, a `LogLinear`, `Pairwise` or `Ising` model, or `Features`, that the data gives; of a `Graph`
    of real columns the `GaussianMarkovNet`."""
    prior = prior_of(objective, prior)
    chosen = Likelihood() if objective is None or isinstance(objective, Bayes) else objective
    data = Statistics([data], data.total) if isinstance(data, Moments) else data
    if isinstance(data, Statistics):
        data.require_all_cells("an undirected model")
    if not isinstance(data, Statistics) and not is_moments(model, data):
        data = scan(data)
    if is_undirected(model) and not isinstance(model, (LogLinear, Features, MarkovNet)):
        columns = data.variables if isinstance(data, Statistics) else data.schema
        graph = Graph(model)
        if len(graph) > 0 and all(isinstance(columns.get(n), Real) for n in graph.nodes):
            NUMBERS.check(objective or chosen)
            for name, value in {"penalty": penalty, "method": method, "prior": prior, "base": base}.items():
                if value is not None:
                    raise FitError(
                        f"{argument(name)} is not for graphs of real columns, whose estimate is that of maximum likelihood "
                        f"(covariance selection); a precision is penalised by {LASSO}"
                    )
            return fit_gaussian(graph, data)
    (FEATURES if isinstance(model, Features) else TABLES).check(objective or chosen)
    if base is not None and not isinstance(base, MarkovNet):
        raise FitError(f"a base measure is a MarkovNet, MarkovNet({{'x': logs}}, variables), not {type(base).__name__}")
    wanted = undirected_model(model)
    if wanted is None:
        raise FitError(f"{model!r} is no undirected model: a Graph, LogLinear, Pairwise, Ising or Features is")
    penalties = as_penalties(penalty)
    options: dict[str, Any] = {"objective": chosen, "penalties": penalties, "method": method, "prior": as_prior(prior)}
    options |= {"base": base, "budget": budget}
    if is_moments(model, data):
        if not isinstance(chosen, MaxEntropy):
            raise FitError(f"moments instead of rows make a distribution of maximum entropy: objective={MAX_ENTROPY}")
        own = wanted.finite_variables(wanted.variables) if isinstance(wanted, Features) else {}
        return _estimate(SolvableProblem(wanted, own, None, moments=data, **options))
    known = model.variables if isinstance(model, MarkovNet) else wanted.variables if isinstance(wanted, Features) else {}
    rows = data if isinstance(data, Statistics) else complete_rows(data, wanted.nodes, known)
    variables = rows.variables if isinstance(rows, Statistics) else rows.schema
    if lacking := [n for n in wanted.nodes if n not in variables]:
        raise DataError(
            f"the statistics do not speak of {listing(lacking)}, which the model names{nearest(lacking[0], variables)}"
        )
    known = wanted.finite_variables(variables)
    need = 8.0 * COPIES * sum(float(n_configurations([known[n] for n in scope])) for scope in wanted.scopes)
    check_room(budget.room, need, "the tables of the model", "take smaller cliques, or a pairwise model")
    return _estimate(SolvableProblem(wanted, known, rows, **options))


def _estimate(problem: SolvableProblem) -> MarkovNet:
    """The estimate; where the run was stopped before there was one, that is said."""
    try:
        net: MarkovNet = problem.objective.fit(problem)
    except (OutOfTime, Stopped) as stop:
        goal = problem.objective
        what = f"the estimate by {goal!r} converged, and there is none on the way; {CONTRASTIVE} has one after each round"
        raise problem.budget.watch("fitting").too_early(stop, what) from None
    return net


def is_moments(model: Any, data: Any) -> bool:
    """Whether these are numbers under the names of features, and no columns of rows."""
    if not isinstance(model, Features) or not isinstance(data, Mapping):
        return False
    return any(name in data and not (name in model.variables and np.ndim(data[name])) for name in model.tables)


def score_undirected(model: Any, data: Any, score: Any) -> float:
    """The score of an undirected model: its log-likelihood at the maximum less the price of its parameters, or its evidence."""
    if isinstance(score, Evidence):
        fitted: Any = fit_undirected(model, data, prior=score.prior)  # numbers have no prior here, and are refused
        return float(fitted.log_evidence)
    net = fit_undirected(model, data)
    return float(net.log_likelihood() - score.price(net.summary().weight) * net.n_parameters)


def refuse_directed(**given: Any) -> None:
    """Options of `fit` and `score` that are of Bayesian networks only."""
    for name, value in given.items():
        if value is not None and value != ():
            raise FitError(f"{name}= is for Bayesian networks, and this model is undirected")


def refuse_undirected(**given: Any) -> None:
    """Options of `fit` that are of undirected models only."""
    for name, value in given.items():
        if value is not None:
            raise FitError(
                f"{name}= is for undirected models, such as Graph('a -- b') and LogLinear([...]), and this one is directed"
            )


@dataclass(frozen=True, eq=False)
class SolvableProblem(UndirectedProblem):
    """A problem as `Objective.fit` takes it."""

    def by_likelihood(self) -> MarkovNet:
        from suffice.learning.undirected.likelihood import maximum_likelihood

        return maximum_likelihood(self)

    def by_entropy(self, slack: float) -> MarkovNet:
        from suffice.learning.undirected.moments import flattest

        return flattest(self, slack)

    def by_pseudo_likelihood(self) -> MarkovNet:
        from suffice.learning.undirected.without_tree import maximum_pseudo_likelihood

        return maximum_pseudo_likelihood(self)

    def by_conditional(self, goal: Conditional) -> MarkovNet:
        from suffice.learning.undirected.without_tree import maximum_conditional_likelihood

        return maximum_conditional_likelihood(self, goal.target)

    def by_contrastive_divergence(self, goal: ContrastiveDivergence) -> MarkovNet:
        from suffice.learning.undirected.without_tree import contrastive_divergence

        return contrastive_divergence(self, goal)
