"""What version 0.1 called otherwise, and how it is still understood, with a note. This file goes with 0.3."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from suffice.errors import ArgumentError, note

P = ParamSpec("P")
R = TypeVar("R")

MOVED = {
    "chains": "Diffuse Free Given Missing Refuse Sequences Stationary lag",
    "choices": "EBIC HeldOut ICL StARS",
    "constraints": "Adjacent Candidates MaxParents NotAncestor read_tiers",
    "formats": "networks tables",
    "graphs": "compare n_dags",
    "independence": "ChiSquared FisherZ GSquared IndependenceTest LikelihoodRatio MutualInformation independence_test",
    "information": "entropy kl observed_information project",
    "labels": "BIO BIOES Derived Lower Prefix Shape Suffix Transitions read_conll",
    "latent": "Diagonal Full Spherical Tied discriminant",
    "methods": "AIS And Backward Both ChowLiu Conservative DevianceTest FirstSepset Forward GES Gibbs IPF LBFGS "
    "LikelihoodWeighting LocalScores MMHC Majority Or Projected RobbinsMonro Squarem Stepwise TAN Tabu order_mcmc",
    "objectives": "Bayes Hamming Perceptron",
    "plates": "Partial Plate Pooled Separate",
    "priors": "BDs Conjugate EmpiricalBayes Gamma HierarchicalDirichlet KnownVariance LogisticNormal NormalWishart by_evidence",
    "regressions": "BinomialLogit GammaInverse GammaLog Linear NegativeBinomialLog PoissonLog Probit ProportionalOdds Rates "
    "Regression lms",
    "results": "Collapsed Distribution EmRun Factor FactorsRun Found FoundGraph GoodnessOfFit HmmRun Independence "
    "Information LmsRun LogNormaliser Marginals Missingness Mixture MixtureRun MostProbable NegativeBinomial PoissonRates "
    "Projection RbmRun RegressionCpd StructuralRun",
    "scores": "CasteloSiebes GraphPosterior KollerFriedman Penalised Score StructurePrior",
    "statistics": "Counts Moments Request",
    "undirected": "Features GaussianMarkovNet RBM rbm",
}
"""Names that were in `suffice` itself, by the module that has them now."""

TOPIC = {name: topic for topic, names in MOVED.items() for name in names.split()}


def tell_of_place(name: str) -> None:
    """Say where a name is now."""
    note(f"suffice.{name} is suffice.{TOPIC[name]}.{name} since 0.2; from 0.3 on it is found there only")


def tell_of_argument(old: str, new: str) -> None:
    """Say what stands for an argument now."""
    note(f"{old} is {new} since 0.2; from 0.3 on it is refused")


def order_of_arguments(*names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A call whose arguments are (data, score, method, …) and were (data, *names): the old order is told by the types."""

    def of(call: Callable[P, R]) -> Callable[P, R]:
        @wraps(call)
        def call_in_order(*args: P.args, **keywords: P.kwargs) -> R:
            rest: tuple[Any, ...] = args[1:]
            scored = bool(rest) and (rest[0] is None or hasattr(rest[0], "local")) and not isinstance(rest[-1], int)
            if not rest or scored:  # the old order does not begin with a score, or ends with a number
                return call(*args, **keywords)
            given: dict[str, Any] = dict(zip(names, rest, strict=False))
            if len(args) > 1 + len(names) or given.keys() & keywords.keys():
                raise ArgumentError(f"the arguments of {call.__name__} are (data, score, method, ...): name those after data")
            said = ", ".join(f"{name}=..." for name in given)
            tell_of_argument(f"{call.__name__}(data, {', '.join(given)})", f"{call.__name__}(data, {said})")
            return call(args[0], **given, **keywords)  # type: ignore[arg-type]

        return call_in_order

    return of
