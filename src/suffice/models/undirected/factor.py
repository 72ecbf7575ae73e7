"""Factors with named axes, in logarithms, and the tables of the directed twin that a product of them has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.engines.engine import Block
from suffice.errors import ModelError, TooLarge, bytes_in_words, listing, nearest
from suffice.errors.remedies import CONTRASTIVE, PSEUDO
from suffice.families.categorical import Table
from suffice.families.protocol.family import as_numbers, flat_index
from suffice.graphs.undirected import is_perfect, perfect_order
from suffice.inference.finite.logs import Elimination, LogFactor, log_sum
from suffice.inference.finite.network import COMPILING, NONE, Array, Network, greedy_order, part_of, steps
from suffice.output.display import OneTable
from suffice.statistics.counts import checked_cells, freeze, sizes
from suffice.variables import Finite

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
    scopes = steps(inside, network.sizes[part.variables], first)
    scopes = [tuple(int(part.variables[v]) for v in scope) for scope in scopes]
    logs = [LogFactor(tuple(number[n] for n in f.names), f.log[None]) for f in factors]
    gone = Elimination(logs, scopes, network.sizes)
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
