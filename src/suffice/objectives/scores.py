"""Scores: functions of a family and a statistic. One definition serves every family; higher is better; logs are natural.

A score has `bind`, which fills in what it leaves open, and `local`: the score of one node given its parents, from the
statistic of its family; `of_regression` is that of a regression, which has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import comb, log
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Ints
from suffice.basis.registry import Named
from suffice.basis.variables import Variable
from suffice.errors import FitError, nearest
from suffice.errors.remedies import BY_BIC, CONSTRAINTS, as_regression, score_by
from suffice.families import family_of
from suffice.families.priors.priors import Prior, as_prior
from suffice.families.protocol.family import Family, Statistic
from suffice.families.regressions.regression_suprema import Supremum
from suffice.statistics import Statistics

Sets = npt.NDArray[np.int32]


class Score(Named):
    """What a score has to have: every search, `learn`, `score` and `structural_em` use one of your own like those that are here.

    `local` says how well a child goes with its parents, from what was seen of them: the table or the moments that their family
    needs, of rows of this weight. `bind` may fill in what the score leaves open, by all variables and the statistics of each.

    >>> from suffice import search
    >>> class FewParents(Score):
    ...     def local(self, family, child, parents, seen, weight):
    ...         return family.log_likelihood(child, seen) - 3.0 * len(parents)
    >>> rows = {"rain": list("nnyy") * 8, "wet": list("nnyn") * 8, "moon": list("nf") * 4 + list("fn") * 12}
    >>> search(rows, FewParents()).dag
    Dag('moon; rain -> wet')
    """

    listed_in = "scores"

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> Any:
        """The score with its defaults filled from the data, once per search."""
        return self

    def local(self, family: Family[Any], child: Variable, parents: Sequence[Variable], seen: Statistic, weight: float) -> float:
        """The score of one node given its parents; the score of a graph is the sum over its nodes."""
        raise NotImplementedError


@dataclass(frozen=True)
class Penalised(Score):
    """The log-likelihood at its maximum, less a price per parameter. One of your own says the `price`, and is as fast as BIC.

    >>> from dataclasses import dataclass
    >>> import math
    >>> from suffice import search
    >>> @dataclass(frozen=True)
    ... class HannanQuinn(Penalised):
    ...     def price(self, weight):
    ...         return math.log(math.log(weight))
    >>> rows = {"rain": list("nnyy") * 8, "wet": list("nnyn") * 8, "moon": list("nf") * 4 + list("fn") * 12}
    >>> search(rows, HannanQuinn()).dag
    Dag('moon -> wet; wet -> rain')
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "local" in vars(cls):
            raise TypeError(f"{cls.__name__} has a formula of its own: derive it from Score, not from Penalised")

    def price(self, weight: float) -> float:
        """What a parameter costs, of rows of this weight."""
        raise NotImplementedError

    def local(self, family: Family[Any], child: Variable, parents: Sequence[Variable], seen: Statistic, weight: float) -> float:
        return family.log_likelihood(child, seen) - self.price(weight) * family.n_parameters(child, parents)

    def of_regression(self, family: Any, child: Variable, parents: Sequence[Variable], found: Supremum, weight: float) -> float:
        """The score of a regression, which has no statistic: of where its climb ended."""
        return float(found.log_likelihood - self.price(weight) * family.n_parameters(child, parents))


@dataclass(frozen=True)
class LogLikelihood(Penalised):
    """The log-likelihood at its maximum. It never prefers a smaller graph.

    >>> LogLikelihood()
    LogLikelihood()
    """

    word = "loglik"

    def price(self, weight: float) -> float:
        return 0.0


@dataclass(frozen=True)
class AIC(Penalised):
    """log L − k (Akaike 1974).

    >>> AIC()
    AIC()
    """

    word = "aic"

    def price(self, weight: float) -> float:
        return 1.0


@dataclass(frozen=True)
class BIC(Penalised):
    """log L − ½ k ln N (Schwarz 1978).

    >>> BIC()
    BIC()
    """

    word = "bic"

    def price(self, weight: float) -> float:
        return 0.5 * float(np.log(weight))


@dataclass(frozen=True)
class Evidence(Score):
    """ln p(data | graph), parameters integrated out under a prior: `Evidence(BDeu(1))`, `Evidence(K2())`, `Evidence(BGe())`.

    >>> from suffice import BDeu
    >>> Evidence(BDeu(1))
    Evidence(prior=BDeu(ess=1))
    """

    prior: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", as_prior(self.prior))
        if self.prior is None:
            raise FitError("Evidence needs a prior: Evidence(BDeu(1))")

    def bind(self, variables: Any, statistics: Statistics) -> Evidence:
        statistics.require_all_cells("the evidence")
        prior: Prior = self.prior
        return replace(self, prior=prior.bind(variables, statistics))

    def choose(self, variables: Any, nodes: Any, statistics: Statistics) -> Evidence:
        """The same with the numbers that its prior leaves free chosen by these nodes: (child, parents, what was seen)."""
        return replace(self, prior=self.prior.choose(variables, nodes, statistics))

    def local(self, family: Family[Any], child: Variable, parents: Sequence[Variable], seen: Statistic, weight: float) -> float:
        rows = self.prior.imagine(child, parents, seen)
        if rows is None:
            raise FitError(
                f"the prior of this score ({', '.join(p.title for p in self.prior.parts)}) says nothing about "
                f"{child.name!r}; add one that does: "
                "BDeu for finite nodes, BGe or NormalInverseGamma for real ones, Gamma for counts, as in "
                f"{score_by('Evidence((BDeu(1), BGe()))', 'bdeu:1+bge')}"
            )
        return family.log_evidence(child, seen, rows)

    def of_regression(self, family: Any, child: Variable, parents: Sequence[Variable], found: Supremum, weight: float) -> float:
        """Laplace's approximation, with the ridge of the family as the prior of its effects; not that of this score."""
        if np.isnan(found.log_evidence):
            raise FitError(
                f"{child.name!r} is a regression with a dispersion, which has no prior, and so no evidence: score it with "
                f"{BY_BIC}"
                if family.dispersed or family.profiled
                else f"{child.name!r} is a regression whose effects have a flat prior, and so no evidence: give it a ridge, "
                f"{as_regression(child.name, type(family).__name__, ridge=True)}, or score it with {BY_BIC}, which "
                f"approximates it"
            )
        return found.log_evidence


class StructurePrior:
    """What is believed of a graph before data: ln p(graph), up to a constant, as a sum over its nodes.

    One of your own says `log_prior`; it is used with any score by `GraphPosterior(score, prior)`.

    >>> class NoChildrenOfTheMoon(StructurePrior):
    ...     def log_prior(self, child, parents, n_variables):
    ...         return -100.0 * ("moon" in parents)
    >>> GraphPosterior(BIC(), NoChildrenOfTheMoon()).score
    BIC()
    """

    def check(self, names: Sequence[str]) -> None:
        """Refuse beliefs about what there is not."""

    def log_prior(self, child: str, parents: Sequence[str], n_variables: int) -> float:
        """What these parents of a child add, of a graph of so many variables: less what no parents would add, best."""
        raise NotImplementedError

    def of_sets(self, names: Sequence[str], sets: Sets, axis: Ints) -> Array:
        """The same of many families, by number: the child stands at place axis[g] of sets[g], the others are its parents."""
        members = [[names[v] for v in row] for row in sets.tolist()]
        families = [(row.pop(place), row) for row, place in zip(members, axis.tolist(), strict=True)]
        return np.array([self.log_prior(child, parents, len(names)) for child, parents in families], np.float64)

    def favours_edges(self, names: Sequence[str]) -> bool:
        """Whether some parents are more probable than none: then no parents can be left out for their price alone."""
        return True


@dataclass(frozen=True)
class KollerFriedman(StructurePrior):
    """Each number of parents is equally probable, and so is each set of that number: −ln C(n − 1, k) for k of n variables.

    Of many variables a set of two or three is then one of very many, which a uniform prior over sets forgets (Friedman & Koller
    2003, Machine Learning 50, p. 95). The same for equivalent graphs: turning a covered edge exchanges two numbers of parents.

    >>> round(KollerFriedman().log_prior("a", ["b", "c"], 6), 4)
    -2.3026
    """

    def log_prior(self, child: str, parents: Sequence[str], n_variables: int) -> float:
        return float(self._by_number(n_variables)[len(parents)])

    def of_sets(self, names: Sequence[str], sets: Sets, axis: Ints) -> Array:
        return np.full(len(sets), self._by_number(len(names))[sets.shape[1] - 1])

    def favours_edges(self, names: Sequence[str]) -> bool:
        return False

    @staticmethod
    def _by_number(n: int) -> Array:
        return -np.array([log(comb(n - 1, k)) for k in range(n)])


@dataclass(frozen=True)
class EdgePrice(StructurePrior):
    """Each parent costs 2 γ ln n, of n variables: what EBIC adds to BIC (Foygel & Drton 2010, NIPS 23).

    >>> round(EdgePrice(0.5).log_prior("a", ["b"], 100), 4)
    -4.6052
    """

    gamma: float

    def log_prior(self, child: str, parents: Sequence[str], n_variables: int) -> float:
        return -2.0 * self.gamma * len(parents) * log(n_variables)

    def of_sets(self, names: Sequence[str], sets: Sets, axis: Ints) -> Array:
        return np.full(len(sets), -2.0 * self.gamma * (sets.shape[1] - 1) * log(len(names)))

    def favours_edges(self, names: Sequence[str]) -> bool:
        return False


@dataclass(frozen=True)
class CasteloSiebes(StructurePrior):
    """Soft beliefs: how probable each edge (parent, child) is, of a pair that is joined one way, the other way, or not at all.

    What is left of a pair of which one direction is named is shared by the other direction and no edge. Each direction of a pair
    that is not named has the probability `others`: 1/3 says nothing, less asks more of every edge (Castelo & Siebes 2000,
    International Journal of Approximate Reasoning 24, p. 39). What is sure is a constraint: `Require`, `Forbid`.

    >>> beliefs = CasteloSiebes({("smoke", "cancer"): 0.8})
    >>> round(beliefs.log_prior("cancer", ["smoke"], 5), 4), round(beliefs.log_prior("smoke", ["cancer"], 5), 4)
    (2.0794, 0.0)
    """

    beliefs: Mapping[tuple[str, str], float]
    others: float = 1.0 / 3.0

    def __post_init__(self) -> None:
        for edge, p in self.beliefs.items():
            if not (isinstance(edge, tuple) and len(edge) == 2 and edge[0] != edge[1]):
                raise FitError(f"a belief is about an edge (parent, child) of two variables, not about {edge!r}")
            _check_probability(p, f"the belief in {edge[0]!r} -> {edge[1]!r}", 1.0)
            if p + self.beliefs.get((edge[1], edge[0]), 0.0) >= 1.0:
                raise FitError(f"the beliefs in both directions between {edge[0]!r} and {edge[1]!r} leave nothing for no edge")
        _check_probability(self.others, "the belief in each direction of other pairs", 0.5)

    def __hash__(self) -> int:
        return hash((frozenset(self.beliefs.items()), self.others))

    def check(self, names: Sequence[str]) -> None:
        for name in (end for edge in self.beliefs for end in edge):
            if name not in names:
                raise FitError(f"the beliefs name {name!r}, which is no variable of the search{nearest(name, names)}")

    def log_prior(self, child: str, parents: Sequence[str], n_variables: int) -> float:
        return sum(self._log_odds(p, child) for p in parents)

    def of_sets(self, names: Sequence[str], sets: Sets, axis: Ints) -> Array:
        odds = self._matrix(names)
        return np.asarray(odds[sets[np.arange(len(sets)), axis][:, None], sets].sum(1))

    def favours_edges(self, names: Sequence[str]) -> bool:
        return bool((self._matrix(names) > 0).any())

    def _matrix(self, names: Sequence[str]) -> Array:
        """[child, parent]: what each edge adds; nothing on the diagonal."""
        number = {name: i for i, name in enumerate(names)}
        odds = np.full((len(names), len(names)), log(self.others / (1.0 - 2.0 * self.others)))
        np.fill_diagonal(odds, 0.0)
        for a, b in (pair for edge in self.beliefs for pair in (edge, edge[::-1])):
            odds[number[b], number[a]] = self._log_odds(a, b)
        return odds

    def _log_odds(self, parent: str, child: str) -> float:
        """ln p(parent -> child) − ln p(no edge)."""
        one, two = self.beliefs.get((parent, child)), self.beliefs.get((child, parent))
        if one is None:
            return log(self.others / (1.0 - 2.0 * self.others)) if two is None else 0.0
        return log(2.0 * one / (1.0 - one)) if two is None else log(one / (1.0 - one - two))


def _check_probability(p: object, what: str, below: float) -> None:
    if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0.0 < p < below:
        hint = f"; what is sure is a constraint, {CONSTRAINTS}" if p in (0, 1) else ""
        raise FitError(f"{what} is a probability between 0 and {below:g}, not {p!r}{hint}")


@dataclass(frozen=True)
class GraphPosterior(Score):
    """ln p(graph | data) up to a constant: any score, and what a structure prior believes of the graph.

    >>> from suffice import BDeu, search
    >>> rows = {"rain": list("nnyy") * 8, "wet": list("nnyn") * 8, "moon": list("nf") * 4 + list("fn") * 12}
    >>> search(rows, GraphPosterior(BIC(), CasteloSiebes({("wet", "rain"): 0.6}))).dag
    Dag('moon; wet -> rain')
    >>> search(rows, GraphPosterior(Evidence(BDeu(1)), KollerFriedman())).dag
    Dag('moon; rain -> wet')
    """

    score: Any
    prior: StructurePrior
    n_variables: int | None = field(default=None, repr=False, compare=False, kw_only=True)
    """How many variables the graph has: filled by `bind`."""

    def __post_init__(self) -> None:
        if isinstance(self.score, type) or not isinstance(self.prior, StructurePrior):
            wrong = self.score if isinstance(self.score, type) else self.prior
            raise FitError(f"a GraphPosterior is of a score and a structure prior: (BIC(), KollerFriedman()); not of {wrong!r}")

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> GraphPosterior:
        self.prior.check(tuple(variables))
        return GraphPosterior(self.score.bind(variables, statistics), self.prior, n_variables=len(variables))

    def local(self, family: Family[Any], child: Variable, parents: Sequence[Variable], seen: Statistic, weight: float) -> float:
        if self.n_variables is None:
            raise FitError("this score must be bound to variables first: call bind(variables, statistics)")
        believed = self.prior.log_prior(child.name, [p.name for p in parents], self.n_variables)
        return float(self.score.local(family, child, parents, seen, weight)) + believed


def score_of_data(score: Any) -> Any:
    """The score without what it believes of graphs."""
    return score.score if isinstance(score, GraphPosterior) else score


def local_score(score: Any, child: Variable, parents: Sequence[Variable], statistics: Statistics) -> float:
    """The score of a node by statistics.

    Of tables without their small cells it is that of the node alone, and what its parents gain where cells are left: both by the
    same table, so that rows that only one of two families lost are no reason to prefer it.

    >>> from suffice import gather
    >>> s = gather({"x": list("ab") * 20, "y": list("uv") * 20}, "x -> y")
    >>> x, y = s.variables["x"], s.variables["y"]
    >>> local_score(LogLikelihood(), y, [x], s), local_score(LogLikelihood(), y, [x], s.suppress(10))
    (0.0, 0.0)
    """
    family, alone = family_of(child, parents), family_of(child, [])
    seen = statistics.answer(family.needs(child, parents))
    value = float(score.local(family, child, parents, seen, statistics.weight))
    if statistics.suppression is None or not parents:
        return value
    all_rows = statistics.answer(alone.needs(child, []))
    left = Statistics([seen], statistics.weight).answer(alone.needs(child, []))
    signed = ((1.0, all_rows), (-1.0, left))
    return value + sum(sign * float(score.local(alone, child, [], of, statistics.weight)) for sign, of in signed)
