"""Which model takes which objective: one table, by which `fit` refuses what does not exist, and from which the documentation is
made."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from suffice.errors import FitError
from suffice.errors.remedies import Remedy
from suffice.objectives.principles import (
    Bayes,
    Conditional,
    ContrastiveDivergence,
    Likelihood,
    Margin,
    MaxEntropy,
    Objective,
    Perceptron,
    PseudoLikelihood,
)

INSTEAD: dict[type, tuple[type, ...]] = {
    Likelihood: (Conditional, ContrastiveDivergence),
    Bayes: (Likelihood, Conditional, ContrastiveDivergence),
    Conditional: (Margin, Likelihood, ContrastiveDivergence),
    Margin: (Conditional, Likelihood, ContrastiveDivergence),
    Perceptron: (Margin, Conditional, Likelihood, ContrastiveDivergence),
    MaxEntropy: (Likelihood, Conditional, ContrastiveDivergence),
    PseudoLikelihood: (ContrastiveDivergence, Likelihood, Conditional),
    ContrastiveDivergence: (PseudoLikelihood, Likelihood, Conditional),
}
"""What is nearest to an objective, the nearest first: of these a model takes the first that it has."""

OBJECTIVES = tuple(INSTEAD)


@dataclass(frozen=True)
class ModelKind:
    """Models that take the same objectives: what they are called, what is given to `fit`, and how each objective is solved."""

    name: str
    given: str
    takes: Mapping[type, str]
    why: Mapping[type, str] = field(default_factory=dict)
    word: str = ""
    """What `Objective.models` calls these models, if objectives of others can be for them."""

    def check(self, objective: Any, target: str | None = None) -> None:
        """Refuse what is no objective, and one that these models do not take. `target` is the column that others are about."""
        if not isinstance(objective, (Objective, Bayes)):
            known = objective if isinstance(objective, type) and objective in self.takes else next(iter(self.takes))
            hint = f"objective={objective_in_python(known, target)}"
            raise FitError(f"an objective is a value: {hint}, not {objective!r}")
        if type(objective) not in self.takes and self.word not in getattr(objective, "models", ()):
            raise self.refusal(objective, target)

    def refusal(self, objective: Any, target: str | None = None) -> FitError:
        """Why there is no such combination, what is nearest to it, and who takes this objective."""
        near = next(o for o in INSTEAD.get(type(objective), OBJECTIVES) if o in self.takes)
        own = getattr(objective, "models", ())
        others = [kind.name for kind in KINDS if type(objective) in kind.takes or kind.word in own]
        in_words = " and ".join([", ".join(others[:-1]), others[-1]] if len(others) > 1 else others)
        why, target = self.why.get(type(objective), ""), getattr(objective, "target", target)
        about = f":{target}" if _has_target(near) and target else ""
        word = shlex.quote(WORDS.get(near, f"{near.__name__.lower()}{about}"))
        instead = Remedy(objective_in_python(near, target), f"--objective {word}")
        return FitError(
            f"{objective!r} is not for {self.name}{why}; the nearest is {instead}; "
            f"{type(objective).__name__} is for {in_words or 'no model: it says for which by its models'}"
        )


WORDS = {Bayes: "bayes:bdeu:1", PseudoLikelihood: "pseudo", ContrastiveDivergence: "cd:1", MaxEntropy: "max-entropy"}
"""Objectives as the command line has them; the others are called by their names."""


def _has_target(objective: type) -> bool:
    return "target" in getattr(objective, "__dataclass_fields__", ())


def objective_in_python(objective: type, target: str | None = None) -> str:
    """An objective as it is written in Python."""
    if objective is Bayes:
        return "Bayes(BDeu(1))"
    return f"{objective.__name__}({target!r})" if _has_target(objective) and target else f"{objective.__name__}()"


NETWORK = ModelKind(
    "a Bayesian network",
    "`Dag`",
    {
        Likelihood: "closed form; EM with gaps",
        Bayes: "closed form; EM with gaps",
        Conditional: "L-BFGS (finite)",
        Margin: "quadratic program (finite)",
    },
    {Perceptron: ", since it depends on the order of the rows"},
    word="network",
)
TEMPLATE = ModelKind(
    "a chain of slices", "`Template`", {Likelihood: "closed form; EM with gaps", Bayes: "closed form; EM with gaps"}
)
TABLES = ModelKind(
    "a log-linear model",
    "`Graph` of finite columns, `LogLinear`, `Pairwise`, `Ising`",
    {
        Likelihood: "closed form, IPF or L-BFGS",
        Bayes: "imagined counts",
        Conditional: "L-BFGS",
        MaxEntropy: "L-BFGS",
        PseudoLikelihood: "L-BFGS",
        ContrastiveDivergence: "Robbins–Monro",
    },
    word="log-linear",
)
FEATURES = ModelKind(
    "a model of features",
    "`Features`",
    {
        Likelihood: "L-BFGS",
        Conditional: "L-BFGS",
        MaxEntropy: "L-BFGS, also from moments",
        PseudoLikelihood: "L-BFGS",
        ContrastiveDivergence: "Robbins–Monro",
    },
    {Bayes: ", which has no tables that a prior could imagine"},
    word="features",
)
NUMBERS = ModelKind(
    "graphs of real columns",
    "`Graph` of real columns",
    {Likelihood: "covariance selection"},
    dict.fromkeys(OBJECTIVES, ", whose estimate is that of maximum likelihood (covariance selection)"),
)
CHAIN = ModelKind(
    "a LinearChain",
    "`LinearChain`",
    {Conditional: "L-BFGS, OWL-QN", Margin: "Frank–Wolfe", Perceptron: "mistakes"},
    dict.fromkeys(OBJECTIVES, ", which says nothing of what is given"),
    word="labels",
)
MACHINE = ModelKind("an RBM", "`rbm(data, …)`", {ContrastiveDivergence: "gradient steps"})

KINDS = (NETWORK, TEMPLATE, TABLES, FEATURES, NUMBERS, CHAIN, MACHINE)


def prior_of(objective: Any, prior: Any) -> Any:
    """The prior that `Bayes` or `prior=` gives."""
    if not isinstance(objective, Bayes):
        return prior
    if prior is not None:
        raise FitError(f"objective={objective!r} is prior={objective.prior!r}, and prior={prior!r} was given, too: leave one out")
    return objective.prior


def in_markdown() -> str:
    """The table of the documentation."""
    head = ["given to `fit`", *(f"`{o.__name__}`" for o in OBJECTIVES)]
    rows = [[kind.given, *(kind.takes.get(o, "–") for o in OBJECTIVES)] for kind in KINDS]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)) + "\n"
