"""How well the parameters of a network are known that were learned from incomplete rows: a normal distribution of coordinates.

    η ~ N(η̂, C)      C the inverse of the observed information at the estimates (`suffice.learning.incomplete.information`)

The coordinates are those of `families.charts`: log-odds of tables, level, slopes and ln v of Gaussians, coefficients and ln d of
regressions. Nodes that share their parameters have the same ones, and are drawn alike. With a prior C is the inverse of the
curvature of the log posterior, Laplace's approximation, and rows of tables are drawn as Dirichlet distributions of that curvature
(`TableChart.posterior_lines`). Parameters of families that share no missing cell are independent, so C is kept in blocks, 8 n²
bytes for one of n parameters.

And what no data can tell of hidden numbers: their place and scale are not in the data, since if h is 2h + 1 everywhere, its
children need only other coefficients. Those with the same parents and the same children can, besides, be turned into one another:
any rotation of them, and of their loadings with them, gives the observed columns the same distribution.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.basis.variables import Finite, Variable
from suffice.errors import FitError, bytes_in_words, listing, quantity
from suffice.errors.remedies import argument
from suffice.families.charts import Array, Chart
from suffice.families.parameter_draws import semidefinite_root
from suffice.graphs import Dag
from suffice.numerics.inference.finite.network import Ints
from suffice.statistics.counts import n_configurations


@dataclass(frozen=True, eq=False, repr=False)
class ParameterCovariance:
    """The covariance of the coordinates of a network's parameters, by node.

    `charts` has the coordinates of each node, one after another; nodes in `copies` have those of another. `places` has the
    coordinates of each block of dependent ones, and `blocks` its covariance. `unidentified` names nodes with parameters that the
    data does not identify; `posterior` says whether a prior is part of it.

    >>> from suffice import em
    >>> bn = em("x", {"x": ["a"] * 20 + ["b"] * 80 + [None] * 100}, tol=1e-12).model
    >>> bn.parameter_covariance
    ParameterCovariance of 1 parameter in 1 block (8 B): inverse of the observed information
    >>> bn.parameter_covariance.blocks[0].round(6)  # of the log-odds: 1 / (100 · 0.2 · 0.8)
    array([[0.0625]])
    """

    charts: Mapping[str, Chart]
    places: tuple[Ints, ...]
    blocks: tuple[Array, ...]
    unidentified: frozenset[str] = frozenset()
    posterior: bool = False
    copies: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        charts: Mapping[str, Chart],
        covariance: Array,
        unidentified: Iterable[str],
        posterior: bool,
        copies: Mapping[str, str],
    ) -> ParameterCovariance:
        """From one matrix for all coordinates, of which a block has those that are connected."""
        from scipy.sparse.csgraph import connected_components

        n, label = connected_components(covariance != 0.0, directed=False) if len(covariance) else (0, np.zeros(0, np.int64))
        places = tuple(np.flatnonzero(label == i) for i in range(n))
        blocks = tuple(covariance[np.ix_(own, own)] for own in places)
        return cls(dict(charts), places, blocks, frozenset(unidentified), posterior, dict(copies))

    @property
    def n_parameters(self) -> int:
        """The number of coordinates."""
        return sum(map(len, self.places))

    @property
    def n_bytes(self) -> int:
        """The memory of the blocks."""
        return sum(block.nbytes for block in self.blocks)

    @property
    def n_held(self) -> int:
        """The parameters that no coordinate moves: on the boundary, of configurations that no row speaks for, or fixed."""
        return sum(int((~chart.moving).sum()) for chart in self._own.values())

    @property
    def how(self) -> str:
        """Where it comes from, in words."""
        return "inverse of the curvature of the posterior" if self.posterior else "inverse of the observed information"

    @property
    def kind(self) -> str:
        """What is drawn, in words."""
        return "Dirichlet and normal parameters" if self.posterior else "normal parameters"

    def only(self, names: Collection[str]) -> ParameterCovariance:
        """That of some nodes."""
        kept = {n: chart for n, chart in self.charts.items() if n in names}
        firsts: dict[str, str] = {}
        copies = {n: firsts[of] for n in kept if firsts.setdefault(of := self.copies.get(n, n), n) != n}
        where, wanted = self._where(), np.full(sum(c.size for c in self._own.values()), -1)
        old = np.concatenate([np.zeros(0, np.int64), *(where[n] for n in kept if n not in copies)])
        wanted[old] = np.arange(len(old))
        inside = [(wanted[own] >= 0, wanted[own], block) for own, block in zip(self.places, self.blocks, strict=True)]
        places = tuple(own[some] for some, own, _ in inside if some.any())
        blocks = tuple(block[np.ix_(some, some)] for some, _, block in inside if some.any())
        return ParameterCovariance(kept, places, blocks, self.unidentified & set(kept), self.posterior, copies)

    def check(self, names: Collection[str]) -> None:
        """Refuse draws of parameters that the data does not identify."""
        if unknown := [n for n in names if n in self.unidentified]:
            raise FitError(
                f"the data does not identify the parameters of {listing(unknown)}: draws of them would run from one end to the "
                f"other; give a prior, or ask without {argument('interval')}"
            )

    @one_blas_thread
    def draw_parameters(self, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """n draws of the parameters of each node: [n, configurations, parameters of one]."""
        here = np.concatenate([np.zeros(0), *(chart.vector(chart.cpd) for chart in self._own.values())])
        vectors = np.repeat(here[None], n, axis=0)
        for own, root in zip(self.places, self._roots, strict=True):
            vectors[:, own] += rng.standard_normal((n, len(own))) @ root.T
        charts, where = self._own, self._where()
        if self.posterior:
            lines = {
                n: chart.posterior_lines(vectors[:, where[n]], partial(self._between, where[n]), rng)
                for n, chart in charts.items()
            }
        else:
            lines = {n: chart.lines_at(vectors[:, where[n]]) for n, chart in charts.items()}
        return {n: lines[self.copies.get(n, n)] for n in self.charts}

    def _between(self, own: Ints, i: Ints, j: Ints) -> Array:
        """The covariances of the i-th and the j-th of some coordinates."""
        block, place = self._lies[:, own[i]]
        other, at = self._lies[:, own[j]]
        result = np.zeros(len(i))
        for k in np.unique(block):
            both = (block == k) & (other == k)
            result[both] = self.blocks[k][place[both], at[both]]
        return result

    @cached_property
    def _lies(self) -> Ints:
        """The block of each coordinate, and its place there."""
        result = np.zeros((2, self.n_parameters), np.int64)
        for k, own in enumerate(self.places):
            result[:, own] = np.full(len(own), k), np.arange(len(own))
        return result

    @cached_property
    def _roots(self) -> list[Array]:
        return [semidefinite_root(block) for block in self.blocks]

    @property
    def _own(self) -> dict[str, Chart]:
        """The charts of nodes with coordinates of their own."""
        return {name: chart for name, chart in self.charts.items() if name not in self.copies}

    def _where(self) -> dict[str, Ints]:
        """The coordinates of each node."""
        ends = np.cumsum([0, *(chart.size for chart in self._own.values())])
        own = {name: np.arange(a, b) for name, a, b in zip(self._own, ends[:-1], ends[1:], strict=True)}
        return {name: own[self.copies.get(name, name)] for name in self.charts}

    def __repr__(self) -> str:
        sizes = f"{quantity(self.n_parameters, 'parameter')} in {quantity(len(self.blocks), 'block')}"
        unknown = f"; not identified: {listing(sorted(self.unidentified))}" if self.unidentified else ""
        return f"ParameterCovariance of {sizes} ({bytes_in_words(self.n_bytes)}): {self.how}{unknown}"


def hidden_numbers(dag: Dag, variables: Mapping[str, Variable], hidden: Collection[str]) -> tuple[str, ...]:
    """The hidden variables that are numbers, parents before children."""
    return tuple(n for n in dag.topological_order if n in hidden and not isinstance(variables[n], Finite))


def rotations(dag: Dag, variables: Mapping[str, Variable], names: Collection[str]) -> list[tuple[str, ...]]:
    """The sets of hidden numbers that only a rotation tells apart: those with the same children and the same parents, all of them
    numbers. (Configurations of finite ones have variances of their own, which a rotation would not leave alone.)"""
    sets: dict[tuple[frozenset[str], frozenset[str]], list[str]] = {}
    for name in names:
        parents = frozenset(dag.parents(name))
        if not any(isinstance(variables[p], Finite) for p in parents):
            sets.setdefault((parents, frozenset(dag.children(name))), []).append(name)
    return [tuple(group) for group in sets.values() if len(group) > 1]


def n_conventions(dag: Dag, variables: Mapping[str, Variable], hidden: Collection[str]) -> int:
    """How many of the numbers that distributions list no data can tell: a mean and a variance for each hidden number, at each
    configuration of the finite parents that all of its children share with it; and the angles of `n_angles`."""
    names = hidden_numbers(dag, variables, hidden)
    own = sum(2 * n_configurations(_shared_parents(dag, variables, (n, *dag.children(n)))) for n in names)
    return own + n_angles(dag, variables, names)


def n_angles(dag: Dag, variables: Mapping[str, Variable], names: Collection[str]) -> int:
    """g(g − 1)/2 for g hidden numbers that only a rotation tells apart; without parents, at each configuration of the finite
    parents that all of their children share: classes have rotations of their own."""
    total = 0
    for group in rotations(dag, variables, names):
        free = () if dag.parents(group[0]) else _shared_parents(dag, variables, dag.children(group[0]))
        total += n_configurations(free) * len(group) * (len(group) - 1) // 2
    return total


def _shared_parents(dag: Dag, variables: Mapping[str, Variable], nodes: Sequence[str]) -> tuple[Finite, ...]:
    """The finite parents that all of these nodes have."""
    common = set(dag.parents(nodes[0])).intersection(*(dag.parents(n) for n in nodes[1:]))
    return tuple(v for n in sorted(common) if isinstance(v := variables[n], Finite))


def conventions_in_words(names: Collection[str], turned: Collection[tuple[str, ...]]) -> str:
    """What is fixed of these hidden numbers, for the sentence that says how a network was fitted; `turned` are sets of them that
    only a rotation tells apart."""
    if not names:
        return ""
    has, loading = ("has", "a first loading") if len(names) == 1 else ("have", "first loadings")
    words = f"; by convention {listing(names)} {has} mean 0, variance 1 and {loading} above 0"
    for group in turned:
        words += (
            f"; only a rotation tells {listing(group)} apart, which is fixed, too: their loadings are uncorrelated if weighted "
            "by 1/noise, the largest first"
        )
    return words
