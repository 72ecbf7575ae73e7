"""Trees: `ChowLiu`, the best graph with one parent for each variable at most, and `TAN`, the same below a class.

Of all graphs in which a node has at most one parent, the one is sought whose edges weigh most. Where an edge weighs the same in
both directions and may have either, that is a maximum spanning tree with the light edges left out, directed away from a root
(Prim 1957). Otherwise it is a maximum branching (Edmonds 1967).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from suffice.basis.arrays import Array, Bools, Ints
from suffice.errors import FitError, nearest
from suffice.objectives.scores import LogLikelihood
from suffice.structure.problem import Method, Outcome, Problem
from suffice.structure.rules import Parents, Rules

NONE = -1


@dataclass(frozen=True)
class ChowLiu(Method):
    """The best tree (Chow & Liu 1968): each variable has at most one parent.

    An edge weighs what it adds to the score of its child. With `LogLikelihood` that is the number of rows times the mutual
    information, and the result is a spanning tree. A score that charges for parameters leaves out the edges that do not pay: the
    result is the best forest. It is the optimum among all graphs of this kind that keep the rules, also where a score or a rule
    prefers one direction. `root` names a variable that gets no parent; otherwise the first of each tree by name is its root.
    `found.graph` is the tree without directions.

    >>> from suffice import search
    >>> rows = {"a": list("uuuuvvvv") * 9, "b": list("uuuvvvvu") * 9, "c": list("uuvvvvuu") * 9}
    >>> search(rows, method=ChowLiu()).dag.edges
    (('a', 'b'), ('b', 'c'))
    """

    word = "chow-liu chow-liu-graph"

    root: str | None = None

    def __post_init__(self) -> None:
        if self.root is not None and not isinstance(self.root, str):
            raise FitError(f"the root must be the name of a variable, not {self.root!r}")

    def run(self, problem: Problem) -> Outcome:
        """The forest whose edges gain most."""
        rules = problem.rules
        single, pair = problem.scores.pairs()
        root = NONE if self.root is None else number_of(problem, self.root, "root")
        if root != NONE and rules.required[root].any():
            above = problem.names[int(np.argmax(rules.required[root]))]
            raise FitError(f"{self.root!r} cannot be the root: the edge {above!r} -> {self.root!r} is required")
        parent = forest(problem, pair - single[:, None], rules, float(single.sum()), root, "ChowLiu").tolist()
        parents: list[Parents] = [() if p == NONE else (p,) for p in parent]
        problem.progress.better("tree", problem.scores.total(parents), parents)
        return Outcome(parents)


@dataclass(frozen=True)
class TAN(Method):
    """Tree-augmented naive Bayes (Friedman, Geiger & Goldszmidt 1997, section 4): the target above all, and a tree below it.

    An edge j -> i of the tree weighs score(i | target, j) − score(i | target); with `LogLikelihood` that is the number of rows
    times the mutual information given the target, as in the paper. Scores that charge for parameters leave out edges that do not
    pay: where none does, the result is naive Bayes.

    >>> from suffice import search
    >>> rows = {"ill": list("nnnnyyyy") * 9, "cough": list("nnnyyyyn") * 9, "fever": list("nnyyyynn") * 9}
    >>> found = search(rows, method=TAN("ill"))
    >>> found.trace[-1].what
    'tree below ill'
    """

    word = "tan"
    after_colon = ("target", str)

    target: str

    def __post_init__(self) -> None:
        if not isinstance(self.target, str):
            raise FitError(f"the target must be the name of a variable, not {self.target!r}")

    def run(self, problem: Problem) -> Outcome:
        """Naive Bayes, and the forest of the other variables whose edges gain most."""
        target = number_of(problem, self.target, "target")
        others = [i for i in range(problem.n) if i != target]
        below = [i for i in others if i not in problem.given]
        self._check(problem, target, below)
        rules, scores = problem.rules, problem.scores
        pairs = [(i, tuple(sorted((target, j)))) for i in below for j in others if j != i and rules.allowed[i, j]]
        scores.ahead([*((i, (target,)) for i in below), *pairs])
        alone = scores.families([(i, (target,)) for i in below])
        inner = np.ix_(others, others)
        weight = np.full((problem.n, problem.n), -np.inf)
        for i, score in zip(below, alone.tolist(), strict=True):
            candidates = [j for j in others if rules.allowed[i, j] and rules.max_parents[i] > 1]
            if candidates and score > -np.inf:
                weight[i] = scores.toggles(i, (target,), candidates) - score
            problem.progress.check()
        kept = Rules(rules.allowed[inner], rules.required[inner], rules.max_parents[others] - 1)
        tree = forest(problem, weight[inner], kept, float(alone.sum()), NONE, "TAN", others)
        parents: list[Parents] = [()] * problem.n
        for i, p in ((i, p) for i, p in zip(others, tree.tolist(), strict=True) if i in below):
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
) -> Ints:
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


def number_of(problem: Problem, name: str, what: str) -> int:
    """The number of a variable that an option names."""
    if name not in problem.names:
        raise FitError(f"the {what} {name!r} is no variable of the data{nearest(name, problem.names)}")
    return problem.names.index(name)


def best_forest(weight: Array, required: Bools, tie: float, *, root: int = NONE) -> Ints:
    """The parent of each node, NONE for a root; `weight[child, parent]` is −inf for an edge that cannot be.

    Edges of weight ≤ `tie` are left out unless they are required; of edges within `tie` the first by name is taken. A `root` gets
    no parent.
    """
    worth = np.where(weight > tie, weight, -np.inf)
    np.fill_diagonal(worth, -np.inf)
    one_way = np.isfinite(weight) != np.isfinite(weight).T
    np.fill_diagonal(one_way, False)
    there = np.isfinite(worth)
    both = there & there.T
    alone = worth[there & ~both]  # rounding may leave an edge that weighs hardly more than nothing in one direction only
    apart = np.abs(np.where(both, worth, 0.0) - np.where(both, worth.T, 0.0))
    symmetric = (alone <= 2 * tie).all() and (apart <= tie).all()
    if symmetric and not required.any() and not one_way.any():
        tree = spanning_tree(np.maximum(worth, worth.T), tie, max(root, 0))
        return tree if root == NONE else reroot(tree, root)
    bound = required.any(1)
    worth[bound] = -np.inf
    reward = 1.0 + np.abs(weight[np.isfinite(weight)]).max(initial=0.0) * 2 * len(weight)
    worth[required] = weight[required] + reward
    if root != NONE:
        worth[root] = -np.inf
    return branching(worth, tie)


def spanning_tree(weight: Array, tie: float, first: int = 0) -> Ints:
    """The parent of each node in the maximum spanning forest of a symmetric matrix; of each tree the first node is the root."""
    n = len(weight)
    parent = np.full(n, NONE)
    link, nearest = np.full(n, -np.inf), np.full(n, NONE)
    outside = np.ones(n, bool)
    node = first
    for _ in range(n):
        outside[node], link[node] = False, -np.inf
        row = weight[node]
        closer = outside & ((row > link + tie) | (row >= link - tie) & (node < nearest))
        link[closer], nearest[closer] = row[closer], node
        top = link.max(initial=-np.inf)
        if top == -np.inf:
            if not outside.any():
                break
            node = int(np.argmax(outside))
            continue
        node = int(np.argmax(link >= top - tie))
        parent[node] = nearest[node]
    return parent


def reroot(parent: Ints, root: int) -> Ints:
    """The same forest with this node as a root: the way up from it is turned around."""
    turned, node, below = parent.copy(), root, NONE
    while node != NONE:
        turned[node], below, node = below, node, parent[node]
    return turned


def branching(weight: Array, tie: float) -> Ints:
    """The parent of each node in the maximum branching."""
    nobody = np.zeros((len(weight), 1))
    return _arborescence(np.hstack([nobody, weight]), tie) - 1


def _arborescence(weight: Array, tie: float) -> Ints:
    """The column of each row's parent: column 0 is the root, everybody's parent at need, and column i + 1 is row i.

    Each row takes its best column. Cycles among these are contracted, each into its first member, and the smaller problem says
    where each is to be broken.
    """
    n = len(weight)
    parent = _first_best(weight, tie, axis=1)
    cycles = _cycles(parent)
    if not cycles:
        return parent
    # What each edge loses against the chosen one: a constant for each row, which has one parent anyway, so nothing else changes.
    loss = weight - weight[np.arange(n), parent][:, None]
    into, out_of = dict[int, Ints](), dict[int, Ints]()
    for cycle in cycles:
        members = loss[:, cycle + 1]
        out_of[cycle[0]] = cycle[_first_best(members, tie, axis=1)] + 1
        loss[:, cycle[0] + 1] = members.max(1)
    for cycle in cycles:
        into[cycle[0]] = cycle[_first_best(loss[cycle], tie, axis=0)]
        loss[cycle[0]] = loss[cycle].max(0)
        loss[cycle[0], cycle[0] + 1] = -np.inf
    rows = np.setdiff1d(np.arange(n), np.concatenate([c[1:] for c in cycles]))
    columns = np.concatenate([[0], rows + 1])
    above = columns[_arborescence(loss[np.ix_(rows, columns)], tie)]
    for row, column in zip(rows.tolist(), above.tolist(), strict=True):
        node = into[row][column] if row in into else row
        parent[node] = out_of[column - 1][node] if column - 1 in out_of else column
    return parent


def _first_best(weight: Array, tie: float, axis: int) -> Ints:
    return np.asarray(np.argmax(weight >= weight.max(axis, keepdims=True) - tie, axis=axis))


def _cycles(parent: Ints) -> list[Ints]:
    """The rows of each cycle among parent columns, sorted."""
    up = [0, *parent.tolist()]
    seen, found = [-1] + [0] * len(parent), []
    for start in range(1, len(up)):
        way, column = [], start
        while seen[column] == 0:
            seen[column] = start
            way.append(column)
            column = up[column]
        if seen[column] == start and column in way:
            found.append(np.array(sorted(way[way.index(column) :])) - 1)
    return found
