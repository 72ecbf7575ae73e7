"""Factors with named axes, in logarithms, the tables of the directed twin that a product of them has, and the weights of a model
as one flat vector, of which factor tables are made.

    ln φ_f(cells) = A w,    gradient by w = Aᵀ (gradient by the cells)

Every term of the model is put into one factor that covers it; A is sparse, with a row per cell of all factors and a column per
weight. Log-linear models have a weight for each cell of each term, too many by far, so that nothing depends on the order of the
states; without a penalty those are reported that sum to zero over each axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations, pairwise
from math import prod
from typing import Any

import numpy as np

from suffice.basis.output.display import OneTable
from suffice.basis.variables import Finite
from suffice.engines.engine import Block
from suffice.errors import FitError, ModelError, TooLarge, bytes_in_words, listing, nearest
from suffice.errors.remedies import CONTRASTIVE, PSEUDO
from suffice.families.categorical import Table
from suffice.families.protocol.family import as_numbers, flat_index
from suffice.graphs.undirected import is_perfect, perfect_order
from suffice.models.undirected.log_linear import Names, Term
from suffice.numerics.inference.finite.junction_tree import FactorTree
from suffice.numerics.inference.finite.logs import Elimination, LogFactor, log_sum
from suffice.numerics.inference.finite.network import COMPILING, NONE, Array, Ints, Network, greedy_order, part_of, steps, strides
from suffice.statistics import Statistics
from suffice.statistics.counts import checked_cells, freeze, sizes

MAX_CELLS = 2.0**26
"""A directed twin has no more cells in all its tables: 512 MiB."""
HOPELESS = 1e8 * MAX_CELLS
"""Where the first orders of elimination have more cells than this, no other is looked for."""
NO_TREE = f"{PSEUDO} and {CONTRASTIVE} learn without it, and sample() then draws by Gibbs sampling"


@dataclass(frozen=True, eq=False, repr=False)
class Factor(OneTable):
    """ln φ(x) over some variables, an axis for each; −inf where something is impossible.

    >>> Factor((Finite("x", ["a", "b"]),), [0.0, 1.5])["b"]
    1.5
    """

    variables: tuple[Finite, ...]
    log: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        checked_cells(self.variables, "a factor")
        log = np.array(as_numbers(self.log, f"the factor of {listing(self.names)} must be numbers"), dtype=np.float64, order="C")
        if log.shape != sizes(self.variables):
            raise ModelError(f"the factor of {listing(self.names)} needs the shape {sizes(self.variables)}, not {log.shape}")
        if np.isnan(log).any() or (log == np.inf).any():
            raise ModelError(f"the factor of {listing(self.names)} is in logarithms: numbers, or −inf for what is impossible")
        object.__setattr__(self, "log", freeze(log))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(v.name for v in self.variables)

    def __getitem__(self, states: Any) -> float:
        """ln φ at one joint state."""
        own = states if isinstance(states, tuple) else (states,)
        if len(own) != len(self.variables):
            raise ModelError(f"this factor is of {len(self.variables)} variables, and {states!r} is a state of {len(own)}")
        return float(self.log[tuple(v.code(s) for v, s in zip(self.variables, own, strict=True))])

    def ordered(self) -> Factor:
        """The same with the axes in the order of their names."""
        order = sorted(range(len(self.variables)), key=lambda i: self.variables[i].name)
        return Factor(tuple(self.variables[i] for i in order), np.transpose(self.log, order))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Factor) and self.variables == other.variables and np.array_equal(self.log, other.log)

    __hash__ = None  # type: ignore[assignment]

    def _headline(self) -> str:
        return "ln φ"

    def _table(self) -> tuple[list[str], list[list[object]]]:
        cells = list(np.ndindex(*self.log.shape))[:40]
        rows = [[*(v.states[i] for v, i in zip(self.variables, c, strict=True)), float(self.log[c])] for c in cells]
        return [*self.names, "ln φ"], rows

    def _below(self) -> str:
        return f"\n… and {self.log.size - 40} more" if self.log.size > 40 else ""


def checked_factors(given: Any, variables: Mapping[str, Finite]) -> tuple[Factor, ...]:
    """Factors as a user writes them: `Factor`s, pairs (names, logs), or a mapping from names to logs."""
    pairs: Any = given.items() if isinstance(given, Mapping) else given
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise ModelError(f"factors are a mapping from names to tables of logarithms, {{('x', 'y'): logs}}, not {given!r}")
    result = []
    for one in pairs:
        if isinstance(one, Factor):
            result.append(one)
            continue
        if not isinstance(one, (tuple, list)) or len(one) != 2:
            raise ModelError(f"a factor is a pair of names and a table of logarithms, (('x', 'y'), logs), not {one!r}")
        names, log = one
        own = (names,) if isinstance(names, str) else tuple(names)
        for name in own:
            if name not in variables:
                raise ModelError(f"a factor names {name!r}, which no variable declares{nearest(str(name), variables)}")
        if len(set(own)) < len(own):
            raise ModelError(f"a factor names a variable twice: {listing(own)}")
        result.append(Factor(tuple(variables[n] for n in own), log))
    return tuple(result)


def network_of(factors: Sequence[Factor], variables: Mapping[str, Finite]) -> Network:
    """The factors by number, each scaled so that its largest cell is 1."""
    number = {n: i for i, n in enumerate(variables)}
    tables = []
    for f in factors:
        high = f.log.max(initial=-np.inf)
        tables.append(([number[n] for n in f.names], NONE, np.exp(f.log - (high if np.isfinite(high) else 0.0))))
    return Network.of([v.n_states for v in variables.values()], tables)


def eliminate(factors: Sequence[Factor], variables: Mapping[str, Finite]) -> tuple[dict[str, Table], float]:
    """The product of factors as the tables of a Bayesian network, and ln Z, the sum over all states. Variables are eliminated one
    by one: in the product of all that involves x, what is left of its neighbours u stays, and p(x | u) is that product divided by
    its sum over x."""
    network = network_of(factors, variables)
    every = tuple(variables)
    part = part_of(network, network.all_factors, network.no_evidence())
    order = greedy_order(network, part, worth=0.0)
    if order.cells <= HOPELESS:
        order = greedy_order(network, part, worth=COMPILING)
    if order.cells > MAX_CELLS:
        raise TooLarge(
            f"the junction tree of {len(every):,} variables has products of {order.cells:.3g} cells in all "
            f"({bytes_in_words(8.0 * order.cells)}), too many for exact answers; {NO_TREE}"
        )
    inside, number = part.scopes(network), {n: i for i, n in enumerate(every)}
    first = _without_new_edges(inside, len(part.variables)) or order.order.tolist()
    scopes = [tuple(int(part.variables[v]) for v in scope) for scope in steps(inside, network.sizes[part.variables], first)]
    gone = Elimination([LogFactor(tuple(number[n] for n in f.names), f.log[None]) for f in factors], scopes, network.sizes)
    tables = {}
    for i, scope in enumerate(scopes):
        own = gone.product(i)[0]
        total = log_sum(own, (own.ndim - 1,))[..., None]
        impossible = total == -np.inf
        probs = np.where(impossible, 1.0 / own.shape[-1], np.exp(own - np.where(impossible, 0.0, total)))
        parents = tuple(variables[every[v]] for v in scope[:-1])
        tables[every[scope[-1]]] = Table(variables[every[scope[-1]]], parents, probs)
    for name in every:  # in no factor at all
        if name not in tables:
            tables[name] = Table(variables[name], (), np.full(variables[name].n_states, 1.0 / variables[name].n_states))
    free = sum(np.log(variables[n].n_states) for i, n in enumerate(every) if i not in set(part.variables.tolist()))
    log_z = float(gone.joint(())[0]) + float(free)
    if log_z == -np.inf:
        raise ModelError("the factors rule out every joint state: there is no such distribution")
    return {n: tables[n] for n in every}, log_z


def _without_new_edges(scopes: Sequence[Sequence[int]], n: int) -> list[int] | None:
    """An order of elimination that joins nothing new, which a decomposable graph has; the cheapest order need not be one, for to
    join variables of one state costs nothing."""
    near: dict[str, set[str]] = {f"{v:09d}": set() for v in range(n)}  # as names, in their order
    for scope in scopes:
        names = {f"{v:09d}" for v in scope}
        for name in names:
            near[name] |= names - {name}
    around = {name: sorted(others) for name, others in near.items()}
    order = perfect_order(around)
    return [int(name) for name in order] if is_perfect(order, around) else None


def log_prob_of_complete(factors: Sequence[Factor], log_normaliser: float, block: Block) -> Array:
    """ln p of rows that show every cell, Σ ln φ − log Z: no probability is made of them, and so none is too small."""
    total = np.full(block.n_rows, -log_normaliser)
    for factor in factors:
        total += factor.log.reshape(-1)[flat_index(block.columns, factor.variables, block.n_rows)]
    return total


class Terms:
    """The terms of a model over its variables, and the factors, sets of sorted names, that they are put into."""

    def __init__(self, variables: Mapping[str, Finite], terms: Sequence[Term], scopes: Sequence[Names]) -> None:
        self.variables, self.terms, self.scopes = dict(variables), tuple(terms), tuple(scopes)
        self.names = tuple(self.variables)
        self.sizes = np.array([v.n_states for v in self.variables.values()], np.int64)
        self.weight_start = np.cumsum([0, *(t.n_weights(self.variables) for t in terms)], dtype=np.int64)
        self.table_start = np.cumsum([0, *(prod(self.variables[n].n_states for n in s) for s in scopes)], dtype=np.int64)

    @classmethod
    def of(cls, model: Any, variables: Mapping[str, Finite]) -> Terms:
        """The terms of a model value, put into the tables of its scopes."""
        own = {n: variables[n] for n in model.nodes}
        return cls(own, model.terms(own), model.scopes)

    @property
    def n_weights(self) -> int:
        return int(self.weight_start[-1])

    @property
    def n_cells(self) -> int:
        return int(self.table_start[-1])

    @cached_property
    def homes(self) -> tuple[int, ...]:
        """The factor that each term is put into."""
        return smallest_covers([t.scope for t in self.terms], self.scopes, np.diff(self.table_start))

    @cached_property
    def matrix(self) -> Any:
        """A: cells of all factors × weights, sparse."""
        from scipy.sparse import csr_array

        rows, columns, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
        for term, home, first in zip(self.terms, self.homes, self.weight_start, strict=False):
            place = self.places(self.scopes[home], term.scope)
            row, column, value = np.arange(len(place)), place, np.ones(len(place))
            if term.basis is not None:
                row, column = np.nonzero(term.basis[place])
                value = term.basis[place][row, column]
            rows.append(self.table_start[home] + row)
            columns.append(first + column)
            values.append(value)
        shape = (self.n_cells, self.n_weights)
        return csr_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=shape)

    @cached_property
    def _transposed(self) -> Any:
        return self.matrix.T.tocsr()

    def places(self, scope: Names, inner: Names) -> Ints:
        """For each cell of a table over `scope` the cell that it falls into of one over some of its variables."""
        shape = [self.variables[n].n_states for n in scope]
        steps = dict(zip(inner, strides([self.variables[n].n_states for n in inner]), strict=True))
        result = np.zeros(shape, np.int64)
        for axis, name in enumerate(scope):
            if name in steps:
                step = steps[name] * np.arange(shape[axis])
                result += step.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        return result.reshape(-1)

    def log_tables(self, weights: Array) -> Array:
        return np.asarray(self.matrix @ weights)

    def by_weight(self, cells: Array) -> Array:
        """The gradient by the weights of something whose gradient by the cells of all factors this is."""
        return np.asarray(self._transposed @ cells)

    def variances(self, shares: Array) -> Array:
        """The variance of each weight's feature, by the shares of all rows in the cells of all factors."""
        squares = self.matrix.copy()
        squares.data **= 2
        return np.asarray(squares.T @ shares) - self.by_weight(shares) ** 2

    @cached_property
    def units(self) -> Array:
        """Half the range of each weight's feature, 1 of those that do not vary: of cells and spins the scale is that already."""
        result = []
        for term, width in zip(self.terms, np.diff(self.weight_start), strict=True):
            half = np.ones(int(width)) if term.basis is None else np.ptp(term.basis, axis=0) / 2.0
            result.append(np.where(half > 0.0, half, 1.0))
        return np.concatenate([np.zeros(0), *result])

    def tables(self, cells: Array) -> list[Array]:
        """Cells of all factors as one table for each."""
        return [
            cells[a:b].reshape([self.variables[n].n_states for n in scope])
            for (a, b), scope in zip(pairwise(self.table_start), self.scopes, strict=True)
        ]

    def count_cells(self, statistics: Statistics) -> Array:
        """The counts of the cells of all factors."""
        return np.concatenate([statistics.counts(scope).dense().reshape(-1) for scope in self.scopes])

    def network(self, log_tables: Array | None = None) -> Network:
        """The factors over numbered variables: in the order of `names`."""
        number = {n: i for i, n in enumerate(self.names)}
        tables = self.tables(np.ones(self.n_cells) if log_tables is None else np.exp(log_tables))
        return Network.of(self.sizes, [([number[n] for n in s], NONE, t) for s, t in zip(self.scopes, tables, strict=True)])

    def tree(self, more: Sequence[Factor] = ()) -> tuple[FactorTree, Array]:
        """The tree of the factors and of further ones after them, and ln φ of the latter."""
        number, own = {n: i for i, n in enumerate(self.names)}, self.network()
        tables = [([number[n] for n in f.names], NONE, np.ones(f.log.shape)) for f in more]
        logs = np.concatenate([np.zeros(0), *(f.log.reshape(-1) for f in more)])
        return FactorTree(own.with_factors(tables) if tables else own, f"{len(number)} variables"), logs

    def per_weight(self, per_term: Array) -> Array:
        """A number for each term as one for each weight."""
        return np.repeat(per_term, np.diff(self.weight_start))

    def weights_by_term(self, weights: Array) -> dict[Names, Array]:
        """The weights of each term as a table over its scope; where it has a basis, one number for each column of that."""
        result = {}
        for term, (a, b) in zip(self.terms, pairwise(self.weight_start), strict=True):
            shape = [self.variables[n].n_states for n in term.scope] if term.basis is None else [b - a]
            result[term.scope] = weights[a:b].reshape(shape)
        return result

    def design(self, names: Sequence[str], keys: Ints) -> Any:
        """b(x) of joint states x, by their flat indices in a table over `names`: states × weights, sparse."""
        from scipy.sparse import csr_array, hstack

        codes = dict(zip(names, np.unravel_index(keys, [self.variables[n].n_states for n in names]), strict=True))
        blocks = []
        for term in self.terms:
            own = [self.variables[n].n_states for n in term.scope]
            cell = np.ravel_multi_index([codes[n] for n in term.scope], own)
            if term.basis is None:
                blocks.append(csr_array((np.ones(len(keys)), cell, np.arange(len(keys) + 1)), shape=(len(keys), prod(own))))
            else:
                blocks.append(csr_array(term.basis[cell]))
        return csr_array(hstack(blocks))

    def centred_weights(self, log_tables: Array) -> Array:
        """The weights that make these tables, up to a constant, and sum to zero over each axis. The part of a table that belongs
        to a set of variables is found by inclusion and exclusion over its means: centring along each axis of the set, the mean
        along every other."""
        if any(t.basis is not None for t in self.terms):
            return self._solve(log_tables)
        if not np.isfinite(log_tables).all():
            raise FitError("some cells are impossible: their weights are −∞, and no other weights are unique")
        place = {t.scope: k for k, t in enumerate(self.terms)}
        weights = np.zeros(self.n_weights)
        for scope, table in zip(self.scopes, self.tables(log_tables), strict=True):
            parts: dict[Names, Array] = {(): table}
            for name in reversed(scope):  # from the last axis on, so that axes that remain keep their numbers
                axis = scope.index(name)
                halves: dict[Names, Array] = {}
                for kept, part in parts.items():
                    mean = part.mean(axis=axis, keepdims=True)
                    halves[kept] = mean
                    halves[(name, *kept)] = part - mean
                parts = halves
            for kept, part in parts.items():
                if kept:
                    k = place[kept]
                    weights[self.weight_start[k] : self.weight_start[k + 1]] += part.reshape(-1)
        return weights

    def _solve(self, log_tables: Array) -> Array:
        """The same where terms have bases of their own, by least squares: what each says of each set of variables adds up."""
        subsets = {t for s in self.scopes for k in range(1, len(s) + 1) for t in combinations(s, k)}
        plain = Terms(self.variables, [Term(t) for t in sorted(subsets)], self.scopes)
        columns = [plain.centred_weights(column) for column in self.matrix.toarray().T]
        return np.asarray(np.linalg.lstsq(np.column_stack(columns), plain.centred_weights(log_tables), rcond=None)[0])

    @cached_property
    def contrasts(self) -> Any:
        """C: a sparse basis of the weights that sum to zero over each axis, weights × free parameters, orthonormal columns."""
        from scipy.linalg import helmert
        from scipy.sparse import block_diag, csr_array, kron

        blocks = []
        for term in self.terms:
            if term.basis is None:
                blocks.append(reduce(kron, [csr_array(helmert(self.variables[n].n_states).T) for n in term.scope]))
            else:
                blocks.append(csr_array(np.eye(term.basis.shape[1])))
        return csr_array(block_diag(blocks))


def smallest_covers(scopes: Sequence[Names], sets: Sequence[Names], sizes: Sequence[int] | Ints) -> tuple[int, ...]:
    """Of each scope the smallest of some sets that has all of it, the first of equals."""
    holding: dict[str, list[int]] = {}
    for k, own in enumerate(sets):
        for name in own:
            holding.setdefault(name, []).append(k)
    return tuple(min((k for k in holding[s[0]] if set(s) <= set(sets[k])), key=lambda k: (sizes[k], k)) for s in scopes)
