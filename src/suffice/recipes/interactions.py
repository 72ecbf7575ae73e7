"""Hierarchical log-linear models of some data, as sets of generators: their log-likelihoods, and those one term away.

A variable that only one generator g has can be summed out, p(x) = p(x_g) / p(x_g without it) · p(rest), which leaves g without it
(Graham's reduction); a decomposable model is reduced to nothing, and any other to a core, which alone is fitted by iteration:

    ln L(model) = Σ over steps [e(g) − e(g without it)] + ln L(core)        e(g) = Σ_x N(x_g) ln (N(x_g) / N)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import FitError, note
from suffice.learning.fit import fit
from suffice.models.log_linear import LogLinear, Names, maximal
from suffice.statistics import Request, Statistics
from suffice.variables import Finite

Mask = npt.NDArray[np.bool_]


class Interactions:
    """The log-likelihoods of hierarchical models at their maximum, each table and each core once.

    A core without an estimate has −inf: the weights run off to infinity, and no step leads there.

    >>> from suffice.engines import scan
    >>> data = scan({"a": list("uuuuvvvv"), "b": list("uuuvvvvu"), "c": list("uv") * 4})
    >>> models = Interactions(data, dict(data.schema))
    >>> round(models.log_likelihood([("a", "b"), ("c",)]), 4), round(models.log_likelihood([("a", "b"), ("b", "c")]), 4)
    (-15.5889, -15.0658)
    """

    def __init__(self, data: Any, variables: dict[str, Finite], threads: int | None = None) -> None:
        self.data, self.variables, self.threads = data, variables, threads
        self.weight = float(data.weight)
        self._tables: dict[Names, Any] = {}
        self._entropy: dict[Names, float] = {(): 0.0}
        self._cores: dict[tuple[Names, ...], float] = {}
        self._told = False

    def count(self, sets: Iterable[Names]) -> None:
        """Count tables that will be asked for, in one pass over the rows."""
        new = [s for s in dict.fromkeys(sets) if s and s not in self._tables]
        if new:
            seen = self.data.gather([Request(s) for s in new], threads=self.threads)
            self._tables |= {s: seen.counts(s) for s in new}

    def log_likelihood(self, generators: Iterable[Names]) -> float:
        """ln L of a model at its maximum."""
        steps, core = reduction(generators)
        total = 0.0
        for with_it, without in steps:
            total += self._logs(with_it) - self._logs(without)
        return total + (self._core(core) if core else 0.0)

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

    def _core(self, core: tuple[Names, ...]) -> float:
        if core not in self._cores:
            self.count(core)
            statistics = Statistics([self._tables[g] for g in core], self.weight)
            try:
                self._cores[core] = float(fit(LogLinear(core), statistics).log_likelihood())
            except FitError as error:
                if not self._told:
                    note(f"models without an estimate are left out of the search; the first: {error}")
                    self._told = True
                self._cores[core] = -np.inf
        return self._cores[core]


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
