"""What a graph says about its hidden numbers: what no data can tell of them, and what is fixed by convention.

The place and the scale of a hidden number are not in the data: if h is 2h + 1 everywhere, its children need only other
coefficients. Hidden numbers with the same parents and the same children can, besides, be turned into one another: any rotation
of them, and of their loadings with them, gives the observed columns the same distribution.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from suffice.errors import listing
from suffice.graphs import Dag
from suffice.statistics.counts import n_configurations
from suffice.variables import Finite, Variable


def hidden_numbers(dag: Dag, variables: Mapping[str, Variable], hidden: Collection[str]) -> tuple[str, ...]:
    """The hidden variables that are numbers, parents before children."""
    return tuple(n for n in dag.topological_order if n in hidden and not isinstance(variables[n], Finite))


def rotations(dag: Dag, variables: Mapping[str, Variable], names: Collection[str]) -> list[tuple[str, ...]]:
    """The sets of hidden numbers that only a rotation tells apart: those with the same children and the same parents.

    With finite parents each configuration has a variance of its own, which a rotation would not leave alone.

    >>> from suffice import Real
    >>> dag = Dag("f -> x; g -> x; f -> y; g -> y")
    >>> rotations(dag, {n: Real(n) for n in dag.nodes}, ["f", "g"])
    [('f', 'g')]
    """
    sets: dict[tuple[frozenset[str], frozenset[str]], list[str]] = {}
    for name in names:
        parents = frozenset(dag.parents(name))
        if not any(isinstance(variables[p], Finite) for p in parents):
            sets.setdefault((parents, frozenset(dag.children(name))), []).append(name)
    return [tuple(group) for group in sets.values() if len(group) > 1]


def n_conventions(dag: Dag, variables: Mapping[str, Variable], hidden: Collection[str]) -> int:
    """How many of the numbers that distributions list no data can tell: a mean and a variance for each hidden number, at each
    configuration of the finite parents that all of its children share with it; and the angles of `n_angles`.

    >>> from suffice import Real
    >>> dag = Dag("f -> x; g -> x; f -> y; g -> y")
    >>> n_conventions(dag, {n: Real(n) for n in dag.nodes}, ["f", "g"])
    5
    """
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
    only a rotation tells apart.

    >>> conventions_in_words(["f"], [])
    "; by convention 'f' has mean 0, variance 1 and a first loading above 0"
    """
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
