"""Objectives: what an estimate is the best of, as values; and penalties on weights, which add.

What is minimised is  −log L summed over the rows + c1 Σ|w| + c2 Σ w².  An objective says how a problem is solved (`fit`); the
problem (`learning/undirected/fit.py`) has what that needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from suffice.basis.arrays import Array
from suffice.basis.registry import Named
from suffice.errors import FitError, listing, nearest, whole
from suffice.errors.remedies import LIKELIHOOD, Remedy, argument, weight_penalty
from suffice.families.priors.priors import as_prior


class Objective(Named):
    """What `fit(model, data, objective=…)` takes.

    >>> isinstance(Likelihood(), Objective), isinstance(L2(0.1), Objective)
    (True, False)
    """

    listed_in = "objectives"
    models: ClassVar[tuple[str, ...]] = ()
    """The kinds of models that one of your own is for: `network`, `log-linear`, `features` or `labels`."""

    def fit(self, problem: Any) -> Any:
        """The model that is best for a problem's data."""
        raise NotImplementedError


@dataclass(frozen=True)
class Likelihood(Objective):
    """The likelihood itself: seen and expected margins agree. Exact, by the junction tree.

    >>> Likelihood()
    Likelihood()
    """

    word = "likelihood"
    types = ("Likelihood",)

    def fit(self, problem: Any) -> Any:
        return problem.by_likelihood()


@dataclass(frozen=True)
class Bayes:
    """The posterior of a prior that imagines rows: `objective=Bayes(prior)` is `prior=prior`, the same result to the bit.

    >>> from suffice import BDeu
    >>> Bayes(BDeu(10))
    Bayes(BDeu(ess=10))
    """

    prior: Any

    def __post_init__(self) -> None:
        if self.prior is None or as_prior(self.prior) is None:
            raise FitError(
                f"Bayes is of a prior: {argument('objective', 'Bayes(BDeu(1))', 'bayes:bdeu:1')}; without one, {LIKELIHOOD}"
            )

    def __repr__(self) -> str:
        return f"Bayes({self.prior!r})"


@dataclass(frozen=True)
class MaxEntropy(Objective):
    """The flattest distribution that has the given moments (Jaynes 1957), or comes as near to them as `slack`.

    It is the maximum likelihood estimate of the log-linear model with these features, and with `slack` the one with the
    penalty `L1(slack)` on one row (Dudík, Phillips & Schapire 2007, Journal of Machine Learning Research 8, p. 1217).

    >>> MaxEntropy(slack=0.01)
    MaxEntropy(slack=0.01)
    """

    word = "max-entropy"
    types = ("MaxEntropy",)

    slack: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "slack", positive_number(self.slack, "the slack of MaxEntropy", or_zero=True))

    def fit(self, problem: Any) -> Any:
        return problem.by_entropy(self.slack)


@dataclass(frozen=True)
class PseudoLikelihood(Objective):
    """Σᵢ ln p(xᵢ | all others) in the place of ln p(x): each node given its neighbours, all with the same weights.

    It needs no junction tree, is convex, and consistent (Besag 1975, The Statistician 24, p. 179): with ever more rows of a
    distribution of the model, its optimum tends to that distribution.

    >>> PseudoLikelihood()
    PseudoLikelihood()
    """

    word = "pseudo"
    types = ("PseudoLikelihood",)

    def fit(self, problem: Any) -> Any:
        return problem.by_pseudo_likelihood()


@dataclass(frozen=True)
class ContrastiveDivergence(Objective):
    """The gradient *seen − expected*, with what is expected from `steps` rounds of drawing that start at the rows (CD).

    With `persistent=True` the rounds go on from where the last ones ended, in so many `chains` (PCD): nearer to the likelihood,
    where CD has a bias that falls with `steps`. Hinton 2002, Neural Computation 14, p. 1771; Tieleman 2008, ICML, p. 1064.

    >>> ContrastiveDivergence(steps=1, persistent=True)
    ContrastiveDivergence(steps=1, persistent=True, chains=100)
    """

    word = "cd pcd"
    types = ("ContrastiveDivergence",)
    after_colon = ("steps", int)

    steps: int = 1
    persistent: bool = False
    chains: int = 100

    def __post_init__(self) -> None:
        whole(self.steps, str(Remedy("the number of steps of contrastive divergence", "--objective cd:N, pcd:N: N")), 1)
        whole(self.chains, "the number of chains of contrastive divergence", 1)
        if not isinstance(self.persistent, bool):
            raise FitError(f"persistent is True or False, not {self.persistent!r}")

    @classmethod
    def of_word(cls, text: str, given: dict[str, Any]) -> Self:
        """`cd:1`, or `pcd:1`, whose chains persist."""
        return super().of_word(text, given | {"persistent": text.startswith("p")})

    def fit(self, problem: Any) -> Any:
        return problem.by_contrastive_divergence(self)


@dataclass(frozen=True)
class _Penalty(Named):
    """A price of weights: one number for all, or one for each term."""

    listed_in = "penalties"
    after_colon = ("strength", float)

    strength: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", _check_strength(self.strength, type(self).__name__))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.strength!r})"

    def __add__(self, other: object) -> PenaltySum:
        return PenaltySum((self,)) + other

    def per_term(self, scopes: Sequence[tuple[str, ...]], nodes: Sequence[str]) -> Array:
        """The strength for each term, by the names in its scope."""
        if isinstance(self.strength, float):
            return np.full(len(scopes), self.strength)
        if isinstance(self.strength, Mapping):
            return self._by_name(scopes, nodes)
        return self._by_matrix(scopes, nodes)

    def _by_name(self, scopes: Sequence[tuple[str, ...]], nodes: Sequence[str]) -> Array:
        place = {frozenset(scope): i for i, scope in enumerate(scopes)}
        result = np.zeros(len(scopes))
        for key, value in self.strength.items():
            for name in key:
                if name not in nodes:
                    raise FitError(f"the penalty names {name!r}, which the model does not have{nearest(name, nodes)}")
            if frozenset(key) not in place:
                raise FitError(f"the penalty names {listing(key)} together, and the model has no such term")
            result[place[frozenset(key)]] = value
        return result

    def _by_matrix(self, scopes: Sequence[tuple[str, ...]], nodes: Sequence[str]) -> Array:
        matrix, order = np.asarray(self.strength), {n: i for i, n in enumerate(sorted(nodes))}
        if matrix.shape != (len(order), len(order)):
            raise FitError(
                f"a penalty of {len(order)} variables needs the shape {(len(order), len(order))}, in the order of their names; "
                f"this one has {matrix.shape}"
            )
        if any(len(scope) > 2 for scope in scopes):
            raise FitError(
                "a matrix of penalties is for terms of one or two variables: give the others by name, {('a', 'b', 'c'): x}"
            )
        return np.array([matrix[order[scope[0]], order[scope[-1]]] for scope in scopes])


@dataclass(frozen=True, repr=False)
class L1(_Penalty):
    """c Σ|w|: makes weights exactly zero. `c` is a number, one per term, `{("a", "b"): c}`, or a matrix over the sorted names.

    >>> L1(0.1) + L2(0.5)
    L1(0.1) + L2(0.5)
    """

    word = "l1"


@dataclass(frozen=True, repr=False)
class L2(_Penalty):
    """c Σ w²: makes weights small, and the estimate always exist. `c` as in `L1`.

    >>> L2({"a": 1.0, ("a", "b"): 2.0}).per_term([("a",), ("a", "b")], ["a", "b"])
    array([1., 2.])
    """

    word = "l2"


@dataclass(frozen=True)
class PenaltySum:
    """The sum of penalties.

    >>> total = L1(0.1) + L2(0.5) + L1(0.2)
    >>> total.l1([("a",)], ["a"]).round(3), total.l2([("a",)], ["a"])
    (array([0.3]), array([0.5]))
    """

    parts: tuple[_Penalty, ...] = ()

    def __add__(self, other: object) -> PenaltySum:
        if isinstance(other, _Penalty):
            return replace(self, parts=(*self.parts, other))
        return replace(self, parts=self.parts + other.parts) if isinstance(other, PenaltySum) else NotImplemented

    def l1(self, scopes: Sequence[tuple[str, ...]], nodes: Sequence[str]) -> Array:
        """c1 of each term."""
        return self._sum(L1, scopes, nodes)

    def l2(self, scopes: Sequence[tuple[str, ...]], nodes: Sequence[str]) -> Array:
        """c2 of each term."""
        return self._sum(L2, scopes, nodes)

    def _sum(self, kind: type, scopes: Sequence[tuple[str, ...]], nodes: Sequence[str]) -> Array:
        own = [p.per_term(scopes, nodes) for p in self.parts if isinstance(p, kind)]
        return np.asarray(np.sum([np.zeros(len(scopes)), *own], axis=0))

    def __bool__(self) -> bool:
        return bool(self.parts)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts)) or "no penalty"


def as_penalties(penalty: Any) -> PenaltySum:
    """What `penalty=` takes: None, a penalty, or a sum of them."""
    if penalty is None:
        return PenaltySum()
    if isinstance(penalty, (_Penalty, PenaltySum)):
        return penalty if isinstance(penalty, PenaltySum) else PenaltySum((penalty,))
    some = f"{weight_penalty(1, 0.1)}, {weight_penalty(2, 0.1, '')}, L1({{('a', 'b'): 0.1}}) or a sum of such"
    hint = f"penalty={penalty.__name__}(0.1)" if isinstance(penalty, type) else some
    raise FitError(f"a penalty is a value: {hint}, not {penalty!r}")


def positive_number(value: Any, what: str, *, or_zero: bool = False) -> float:
    """A number above 0, or a refusal that says what it is."""
    number = not isinstance(value, bool) and isinstance(value, (int, float, np.integer, np.floating))
    if not number or not np.isfinite(value) or value < 0 or (value == 0 and not or_zero):
        raise FitError(f"{what} is a number {'of at least' if or_zero else 'above'} 0, not {value!r}")
    return float(value)


def _check_strength(strength: Any, kind: str) -> Any:
    if isinstance(strength, Mapping):
        for key in strength:
            if not key or not isinstance(key, (str, tuple, frozenset)):
                raise FitError(f"a penalty is given by names, {kind}({{'a': 1.0, ('a', 'b'): 2.0}}), not by {key!r}")
        named = {((k,) if isinstance(k, str) else tuple(k)): v for k, v in strength.items()}
        return {key: positive_number(v, f"the strength of {kind} at {listing(key)}", or_zero=True) for key, v in named.items()}
    if isinstance(strength, np.ndarray) or (isinstance(strength, Iterable) and not isinstance(strength, str)):
        try:
            matrix = np.array(strength, dtype=np.float64)
        except (TypeError, ValueError):
            raise FitError(f"a matrix of {kind} penalties is of numbers, square and symmetric, not {strength!r}") from None
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.array_equal(matrix, matrix.T, equal_nan=True):
            raise FitError(f"a matrix of {kind} penalties is square and symmetric, not of the shape {matrix.shape}")
        wrong = matrix[~(np.isfinite(matrix) & (matrix >= 0))]
        if len(wrong):
            raise FitError(f"the strengths of {kind} are numbers of at least 0; {wrong[0]:g} is among them")
        return tuple(map(tuple, matrix.tolist()))
    return positive_number(strength, f"the strength of {Remedy(kind, f'--penalty {kind.lower()}')}")


@dataclass(frozen=True, repr=False)
class _OfTarget(Objective):
    """What is about one column."""

    after_colon = ("target", str)

    target: str

    def __post_init__(self) -> None:
        if not isinstance(self.target, str) or not self.target:
            name = type(self).__name__
            raise FitError(f"{name} is about one column, by its name: {name}('y'), not {self.target!r}")

    def __repr__(self) -> str:
        more = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self)[1:]]
        return f"{type(self).__name__}({', '.join([repr(self.target), *more])})"


@dataclass(frozen=True, repr=False)
class Conditional(_OfTarget):
    """The likelihood of one column given all others, Σ log p(y | rest): what is needed to predict it, and no more.

    Of a Bayesian network or a Markov network of finite columns it changes what y is in, and leaves the rest as the likelihood
    has it; of naive Bayes, or a star, it is logistic regression. Of a linear chain the target is its label.

    `label_weights={"B-PER": 5.0}`, of a `LinearChain`, says that it is worse to miss some labels: in the sum that the right
    labelling is compared with, others count 5 times for each B-PER that they miss. This is the softmax-margin with the cost ln 5
    (Gimpel & Smith 2010, NAACL, p. 733): concave, and the likelihood itself where all weights are 1. Of one step alone it is
    log exp(s_y) / (exp(s_y) + w_y Σ_{j ≠ y} exp(s_j)). Predictions then lean to heavy labels, and so do probabilities.

    >>> Conditional("tag"), Conditional("tag", label_weights={"B-PER": 5})
    (Conditional('tag'), Conditional('tag', label_weights={'B-PER': 5.0}))
    """

    word = "conditional"
    types = ("Conditional",)

    label_weights: Any = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.label_weights
        pairs = isinstance(given, (tuple, list)) and all(isinstance(p, (tuple, list)) and len(p) == 2 for p in given)
        if not (pairs or isinstance(self.label_weights, Mapping)):
            raise FitError(f"label_weights are given by label, {{'B-PER': 5.0}}, not {self.label_weights!r}")
        weights = dict(given).items()
        checked = tuple((str(label), positive_number(w, f"the weight of the label {label!r}")) for label, w in weights)
        object.__setattr__(self, "label_weights", checked)

    def fit(self, problem: Any) -> Any:
        return problem.by_conditional(self)

    def __repr__(self) -> str:
        more = f", label_weights={dict(self.label_weights)!r}" if self.label_weights else ""
        return f"Conditional({self.target!r}{more})"


@dataclass(frozen=True, repr=False)
class Perceptron(_OfTarget):
    """Mistakes: after each sequence whose best labels are wrong, weights move from these to the right ones. `averaged` weights
    are the mean over all steps on the way (Collins 2002, EMNLP, p. 1).

    >>> Perceptron("tag", epochs=5)
    Perceptron('tag', averaged=True, epochs=5)
    """

    word = "perceptron"

    averaged: bool = True
    epochs: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(self.epochs, "the number of epochs of Perceptron", 1)

    def fit(self, problem: Any) -> Any:
        return problem.by_perceptron(self)


@dataclass(frozen=True)
class Hamming:
    """What wrong labels cost: one for each of them.

    >>> Hamming()
    Hamming(cost=1.0)
    """

    cost: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost", positive_number(self.cost, "the cost of a wrong label"))


@dataclass(frozen=True, repr=False)
class Margin(_OfTarget):
    """The structured hinge loss, max over y' of cost(y, y') + score(y') − score(y): the right labels are to win by what others
    cost (Taskar, Guestrin & Koller 2004; Tsochantaridis et al. 2005, JMLR 6, p. 1453).

    Of a linear chain y are all labels of a sequence. Of a Bayesian network of finite columns y is one node, and what is
    minimised is

        Σ n max_k (cost [k ≠ y] + s_k − s_y) + c2 Σ w²

    over distinct rows, n of each, where s_k is the sum of the weights w of the cells that the row is in if y is k, of the
    tables of y and of its children; c2 is that of `penalty=L2(c2)`, ½ if there is none. Any such weights are those of tables if
    all parents of each child are joined: then the least is found, to a duality gap that `fit_info` tells, and of naive Bayes it
    is a support vector machine (Crammer & Singer) with C = 1 / (2 c2) on indicators. In other graphs s_k is ln p(y = k, rest),
    w are the logits of the tables, and the optimum is a local one. The network's probabilities have the same largest state as
    the scores; they are not calibrated.

    >>> Margin("tag")
    Margin('tag', cost=Hamming(cost=1.0))
    """

    word = "margin"

    cost: Hamming = Hamming()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.cost, Hamming):
            raise FitError(f"the cost of Margin is Hamming(), not {self.cost!r}")

    def fit(self, problem: Any) -> Any:
        return problem.by_margin(self)


ObjectiveLike: TypeAlias = Objective | Bayes
"""What `objective=` takes."""

PenaltyLike: TypeAlias = L1 | L2 | PenaltySum
"""What `penalty=` takes."""
