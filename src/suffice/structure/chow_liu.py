"""Trees: `ChowLiu`, the best graph with one parent for each variable at most, and `TAN`, the same below a class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from suffice.errors import FitError, nearest
from suffice.scores import LogLikelihood
from suffice.structure.forest import NONE, best_forest
from suffice.structure.problem import Outcome, Problem
from suffice.structure.rules import Parents, Rules

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ChowLiu:
    """The best tree (Chow & Liu 1968): each variable has at most one parent.

    An edge weighs what it adds to the score of its child. With `LogLikelihood` that is the number of rows times the mutual
    information, and the result is a spanning tree. A score that charges for parameters leaves out the edges that do not pay: the
    result is the best forest. It is the optimum among all graphs of this kind that keep the rules, also where a score or a rule
    prefers one direction. `root` names a variable that gets no parent; otherwise the first of each tree by name is its root.

    >>> from suffice.structure.search import search
    >>> rows = {"a": list("uuuuvvvv") * 9, "b": list("uuuvvvvu") * 9, "c": list("uuvvvvuu") * 9}
    >>> search(rows, method=ChowLiu()).dag.edges
    (('a', 'b'), ('b', 'c'))
    """

    root: str | None = None

    def __post_init__(self) -> None:
        if self.root is not None and not isinstance(self.root, str):
            raise FitError(f"the root must be the name of a variable, not {self.root!r}")

    def run(self, problem: Problem) -> Outcome:
        """The forest whose edges gain most."""
        rules = problem.rules
        single, pair = problem.scores.pairs()
        root = NONE if self.root is None else numbered(problem, self.root, "root")
        if root != NONE and rules.required[root].any():
            above = problem.names[int(np.argmax(rules.required[root]))]
            raise FitError(f"{self.root!r} cannot be the root: the edge {above!r} -> {self.root!r} is required")
        parent = forest(problem, pair - single[:, None], rules, float(single.sum()), root, "ChowLiu").tolist()
        parents: list[Parents] = [() if p == NONE else (p,) for p in parent]
        score = sum(float(single[i] if p == NONE else pair[i, p]) for i, p in enumerate(parent))
        problem.progress.better("tree", score, parents)
        return Outcome(parents)


@dataclass(frozen=True)
class TAN:
    """Tree-augmented naive Bayes (Friedman, Geiger & Goldszmidt 1997, section 4): the target above all, and a tree below it.

    An edge j -> i of the tree weighs score(i | target, j) − score(i | target); with `LogLikelihood` that is the number of rows
    times the mutual information given the target, as in the paper. Scores that charge for parameters leave out edges that do not
    pay: where none does, the result is naive Bayes.

    >>> from suffice.structure.search import search
    >>> rows = {"ill": list("nnnnyyyy") * 9, "cough": list("nnnyyyyn") * 9, "fever": list("nnyyyynn") * 9}
    >>> found = search(rows, method=TAN("ill"))
    >>> found.trace[-1].what
    'tree below ill'
    """

    target: str

    def __post_init__(self) -> None:
        if not isinstance(self.target, str):
            raise FitError(f"the target must be the name of a variable, not {self.target!r}")

    def run(self, problem: Problem) -> Outcome:
        """Naive Bayes, and the forest of the other variables whose edges gain most."""
        target = numbered(problem, self.target, "target")
        others = [i for i in range(problem.n) if i != target]
        self._check(problem, target, others)
        rules, scores = problem.rules, problem.scores
        alone = scores.families([(i, (target,)) for i in others])
        inner = np.ix_(others, others)
        weight = np.full((problem.n, problem.n), -np.inf)
        for i, score in zip(others, alone.tolist(), strict=True):
            candidates = [j for j in others if rules.allowed[i, j] and rules.max_parents[i] > 1]
            if candidates and score > -np.inf:
                weight[i] = scores.toggles(i, (target,), candidates) - score
            problem.progress.check()
        kept = Rules(rules.allowed[inner], rules.required[inner], rules.max_parents[others] - 1)
        tree = forest(problem, weight[inner], kept, float(alone.sum()), NONE, "TAN", others)
        parents: list[Parents] = [()] * problem.n
        for i, p in zip(others, tree.tolist(), strict=True):
            parents[i] = (target,) if p == NONE else tuple(sorted((target, others[p])))
        problem.progress.better(f"tree below {self.target}", scores.total(parents), parents)
        return Outcome(parents)

    def _check(self, problem: Problem, target: int, others: list[int]) -> None:
        rules, names = problem.rules, problem.names
        for i in others:
            if rules.required[target, i]:
                raise FitError(f"TAN has no edge into its target, but {names[i]!r} -> {self.target!r} is required")
            if not rules.allowed[i, target]:
                raise FitError(f"TAN needs the edge {self.target!r} -> {names[i]!r}, which is not allowed")
            if rules.max_parents[i] < 1:
                raise FitError(f"TAN needs the edge {self.target!r} -> {names[i]!r}, but {names[i]!r} may have no parents")


def forest(
    problem: Problem, weight: Array, rules: Rules, base: float, root: int, method: str, numbers: list[int] | None = None
) -> npt.NDArray[np.int64]:
    """The best forest that keeps the rules, over all variables or those with these numbers; `base` is the score without it."""
    names = problem.names if numbers is None else [problem.names[i] for i in numbers]
    for i in np.flatnonzero(rules.required.sum(1) > 1).tolist():
        both = [names[p] for p in np.flatnonzero(rules.required[i]).tolist()]
        raise FitError(f"{method} gives a variable one parent in the tree; {names[i]!r} is required to have {both}")
    tie = problem.scores.tie(base)
    weight = np.where(rules.allowed & (rules.max_parents > 0)[:, None] & ~np.isnan(weight), weight, -np.inf)
    for i, p in np.argwhere(rules.required & (weight == -np.inf)).tolist():
        raise FitError(f"the edge {names[p]!r} -> {names[i]!r} is required, but there is no estimate with it")
    if isinstance(problem.score, LogLikelihood):  # it never charges: an edge that gains nothing still belongs into the tree
        weight = np.where(weight > -np.inf, np.maximum(weight, 0.0) + 2.0 * tie, -np.inf)
    return best_forest(weight, rules.required, tie, root=root)


def numbered(problem: Problem, name: str, what: str) -> int:
    """The number of a variable that an option names."""
    if name not in problem.names:
        raise FitError(f"the {what} {name!r} is no variable of the data{nearest(name, problem.names)}")
    return problem.names.index(name)
