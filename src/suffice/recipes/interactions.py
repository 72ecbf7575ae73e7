"""Hierarchical log-linear models of some data, as sets of generators: their log-likelihoods, and those one term away.

A variable that only one generator g has can be summed out, p(x) = p(x_g) / p(x_g without it) · p(rest), which leaves g without it
(Graham's reduction); a decomposable model is reduced to nothing, and any other to a core. Where a generator s of the core parts
its variables, p(x) = Π p(parts with s) / p(x_s)^(parts − 1). So only prime parts are fitted by iteration, each once:

    ln L(model) = Σ ± e(g) + Σ ln L(prime part)        e(g) = Σ_x N(x_g) ln (N(x_g) / N)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.graphs.paths import reach
from suffice.learning.undirected.ipf import IPF, CliqueTree
from suffice.models.undirected.factor import Terms
from suffice.models.undirected.log_linear import LogLinear, Names, maximal
from suffice.statistics import Request, Statistics
from suffice.variables import Finite

Mask = npt.NDArray[np.bool_]

NEAR = 1e-3
"""How far a log-likelihood may be from its maximum, about, where that is inside,"""

CYCLES = 2000
"""and the cycles after which it is taken as it is: on the boundary they gain less and less, like 1 over their number."""


class Interactions:
    """The log-likelihoods of hierarchical models at their maximum, each table and each prime part once.

    Where a maximum is on the boundary, so that weights run off to infinity, it is approached from below: `CYCLES` come to within
    about 0.1 of it on the data of `asia`, where all rows are 10,000.

    >>> from suffice import scan
    >>> data = scan({"a": list("uuuuvvvv"), "b": list("uuuvvvvv"), "c": list("uuvvuvvv")})
    >>> models = Interactions(data, dict(data.schema))
    >>> round(models.log_likelihood([("a", "b"), ("c",)]), 4), round(models.log_likelihood([("a", "b"), ("b", "c")]), 4)
    (-13.087, -12.2061)
    """

    def __init__(self, data: Any, variables: dict[str, Finite], threads: int | None = None) -> None:
        self.data, self.variables, self.threads = data, variables, threads
        self.weight = float(data.weight)
        self._tables: dict[Names, Any] = {}
        self._entropy: dict[Names, float] = {(): 0.0}
        self._primes: dict[tuple[Names, ...], float] = {}

    def count(self, sets: Iterable[Names]) -> None:
        """Count tables that will be asked for, in one pass over the rows."""
        new = [s for s in dict.fromkeys(sets) if s and s not in self._tables]
        if new:
            seen = self.data.gather([Request(s) for s in new], threads=self.threads)
            self._tables |= {s: seen.counts(s) for s in new}

    def log_likelihood(self, generators: Iterable[Names]) -> float:
        """ln L of a model at its maximum."""
        closed, primes = prime_parts(generators)
        return sum(times * self._logs(names) for names, times in closed.items()) + sum(map(self._prime, primes))

    def n_parameters(self, generators: Iterable[Names]) -> int:
        """How many weights are free."""
        return LogLinear(generators).n_parameters(self.variables)

    def _logs(self, names: Names) -> float:
        """e of a set of variables."""
        if names not in self._entropy:
            self.count([names])
            counts = np.asarray(self._tables[names].listed()[1], np.float64)
            counts = counts[counts > 0]
            self._entropy[names] = float(counts @ np.log(counts / self.weight))
        return self._entropy[names]

    def _prime(self, part: tuple[Names, ...]) -> float:
        """ln L of a model that does not fall apart, by iterative proportional fitting.

        A cycle ends with margins that are off by some share of the rows, and about as much of ln L, per row, is still to gain.
        """
        if part not in self._primes:
            self.count(part)
            model = LogLinear(part)
            terms = Terms.of(model, model.finite_variables(self.variables))
            target = terms.count_cells(Statistics([self._tables[g] for g in part], self.weight)) / self.weight
            found = CliqueTree(terms).fit(target, IPF(tol=min(NEAR / self.weight, 1e-6), max_iter=CYCLES))
            occur = target > 0
            uniform = float(np.log(terms.sizes).sum())
            self._primes[part] = self.weight * (float(target[occur] @ found.log_tables[occur]) - uniform)
        return self._primes[part]


def prime_parts(generators: Iterable[Names]) -> tuple[Counter[Names], list[tuple[Names, ...]]]:
    """How often e of each set counts, and the parts that must be fitted.

    >>> prime_parts([("a", "b"), ("b", "c")])
    (Counter({('a', 'b'): 1, ('b', 'c'): 1, ('b',): -1, (): -1}), [])
    >>> square = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]
    >>> prime_parts([*square, ("d", "e")])[1] == [tuple(sorted(square))]
    True
    """
    steps, core = reduction(generators)
    closed: Counter[Names] = Counter()
    for with_it, without in steps:
        closed[with_it] += 1
        closed[without] -= 1
    if not core:
        return closed, []
    around = {n: {m for g in core if n in g for m in g} for g in core for n in g}
    for separator in core:
        left = {n: sorted(ms - set(separator)) for n, ms in around.items() if n not in separator}
        parts: list[set[str]] = []  # the connected ones of what is left without the separator
        for name in sorted(left):
            if not any(name in part for part in parts):
                parts.append(set(reach([name], left)))
        if len(parts) > 1:
            primes: list[tuple[Names, ...]] = []
            closed[separator] -= len(parts) - 1
            for part in parts:
                more, found = prime_parts([separator, *(g for g in core if not part.isdisjoint(g))])
                closed.update(more)
                primes += found
            return closed, primes
    return closed, [core]


def reduction(generators: Iterable[Names]) -> tuple[list[tuple[Names, Names]], tuple[Names, ...]]:
    """The steps (g, g without a variable that no other generator has) of Graham's reduction, and the core that is left.

    >>> reduction([("a", "b"), ("b", "c")])
    ([(('a', 'b'), ('b',)), (('b', 'c'), ())], ())
    >>> reduction([("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")])
    ([(('c', 'd'), ('c',))], (('a', 'b'), ('a', 'c'), ('b', 'c')))
    """
    sets = sorted(maximal(generators))
    steps: list[tuple[Names, Names]] = []
    while True:
        homes: dict[str, list[int]] = {}
        for k, own in enumerate(sets):
            for name in own:
                homes.setdefault(name, []).append(k)
        alone = next((k for k, own in enumerate(sets) if any(len(homes[n]) == 1 for n in own)), None)
        if alone is None:
            return steps, tuple(sets)
        shared = tuple(n for n in sets[alone] if len(homes[n]) > 1)
        steps.append((sets[alone], shared))
        rest = [*sets[:alone], *sets[alone + 1 :], *([shared] if shared else [])]
        sets = sorted(maximal(rest))


def one_more(generators: Sequence[Names], allowed: Mask, names: Names, max_order: int) -> Iterator[Names]:
    """The terms that a hierarchical model can get: all their subsets are in it already, and all their pairs are allowed.

    >>> list(one_more([("a", "b"), ("a", "c"), ("b", "c")], np.ones((3, 3), bool), ("a", "b", "c"), 3))
    [('a', 'b', 'c')]
    """
    number = {name: i for i, name in enumerate(names)}
    terms = {t for g in generators for k in range(1, len(g) + 1) for t in combinations(g, k)}
    for smaller in sorted(terms, key=lambda t: (len(t), t)):
        if len(smaller) >= max_order:
            continue
        for name in names[number[smaller[-1]] + 1 :]:
            term = (*smaller, name)
            if term in terms or not all(allowed[number[name], number[n]] for n in smaller):
                continue
            if all(part in terms for part in combinations(term, len(term) - 1)):
                yield term


def with_term(generators: Sequence[Names], term: Names) -> tuple[Names, ...]:
    """The generators of a model with one more term."""
    return tuple(sorted(maximal([*generators, term])))


def without_term(generators: Sequence[Names], term: Names) -> tuple[Names, ...]:
    """The generators of a model without one of them; its subsets stay.

    >>> without_term([("a", "b", "c")], ("a", "b", "c"))
    (('a', 'b'), ('a', 'c'), ('b', 'c'))
    """
    rest = [g for g in generators if g != term]
    return tuple(sorted(maximal([*rest, *combinations(term, len(term) - 1)])))


def without_edge(generators: Sequence[Names], a: str, b: str) -> tuple[Names, ...]:
    """The generators of a model without any term that has both variables.

    >>> without_edge([("a", "b", "c")], "a", "b")
    (('a', 'c'), ('b', 'c'))
    """
    rest: list[Names] = []
    for g in generators:
        both = a in g and b in g
        rest += [tuple(n for n in g if n != a), tuple(n for n in g if n != b)] if both else [g]
    return tuple(sorted(maximal(rest)))
