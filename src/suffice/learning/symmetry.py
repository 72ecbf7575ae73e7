"""Hidden variables: states that cannot be told apart at a start, states that lost all rows, labels that changed places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.family import Cpd
from suffice.families.logistic import LogisticCpd
from suffice.graphs import Dag
from suffice.statistics import Statistics
from suffice.variables import Finite, Variable

Array = npt.NDArray[np.float64]

ALIKE = 1e-9
"""Numbers that differ by a smaller share of them are the same, for this."""
FEW = 0.5
"""A hidden state that expects fewer rows than this has collapsed."""


def alike(dag: Dag, variables: Mapping[str, Variable], hidden: str, cpds: Mapping[str, Cpd]) -> list[tuple[str, str]]:
    """Pairs of states of a hidden variable that give every child the same distribution: no iteration tells them apart.

    >>> from suffice.variables import Finite
    >>> h, x = Finite("h", ["a", "b"]), Finite("x", ["u", "v"])
    >>> cpds = {"h": Table(h, (), [0.5, 0.5]), "x": Table(x, (h,), [[0.3, 0.7], [0.3, 0.7]])}
    >>> alike(Dag("h -> x"), {"h": h, "x": x}, "h", cpds)
    [('a', 'b')]
    """
    variable = variables[hidden]
    assert isinstance(variable, Finite)
    profile = profiles(dag, hidden, cpds)
    if profile is None:
        return []
    pairs = combinations(range(variable.n_states), 2)
    size = np.abs(profile)
    return [
        (variable.states[i], variable.states[j])
        for i, j in pairs
        if (np.abs(profile[i] - profile[j]) <= ALIKE * np.maximum(size[i], size[j])).all()
    ]


def profiles(dag: Dag, hidden: str, cpds: Mapping[str, Cpd]) -> Array | None:
    """What each state of a hidden variable says about its children, one line of numbers a state; None without children."""
    parts = []
    for child in dag.children(hidden):
        for numbers, axis in _numbers(cpds[child], hidden):
            parts.append(np.moveaxis(numbers, axis, 0).reshape(numbers.shape[axis], -1))
    return np.concatenate(parts, axis=1) if parts else None


def _numbers(cpd: Any, parent: str) -> list[tuple[Array, int]]:
    """The parameters of a CPD, each with the axis of a finite parent."""
    if isinstance(cpd, ConditionalGaussian):
        axis = [p.name for p in cpd.finite_parents].index(parent)
        spread = np.sqrt(np.nanmean(cpd.variance)) or 1.0
        scaled = ((cpd.intercept / spread, axis), (cpd.coefficients, axis), (np.log(cpd.variance), axis))
        return [(np.nan_to_num(a), i) for a, i in scaled]
    if isinstance(cpd, LogisticCpd):
        return [(cpd.effects(parent), 0)]
    numbers = getattr(cpd, "probs", None)
    numbers = getattr(cpd, "rates", None) if numbers is None else numbers
    return [] if numbers is None else [(np.asarray(numbers), cpd.parents.index(parent))]


def broken(dag: Dag, hidden: str, cpds: Mapping[str, Cpd], rng: np.random.Generator) -> dict[str, Cpd]:
    """The same distributions, those of the children of a hidden variable moved apart a little, at random."""
    result = dict(cpds)
    for child in dag.children(hidden):
        cpd: Any = cpds[child]
        if isinstance(cpd, Table):
            drawn = rng.dirichlet(np.ones(cpd.child.n_states), cpd.probs.shape[:-1])
            result[child] = Table(cpd.child, cpd.parent_variables, 0.8 * cpd.probs + 0.2 * drawn)
        elif isinstance(cpd, ConditionalGaussian):
            moved = cpd.intercept + 0.5 * np.sqrt(cpd.variance) * rng.standard_normal(cpd.intercept.shape)
            result[child] = replace(cpd, intercept=moved)
        elif isinstance(cpd, LogisticCpd):
            b = cpd.coefficients.copy()
            b[:, cpd.columns_of(hidden)] += 0.5 * rng.standard_normal((len(b), len(cpd.effects(hidden)) - 1))
            result[child] = replace(cpd, coefficients=b)
        elif hasattr(cpd, "rates"):
            result[child] = replace(cpd, rates=cpd.rates * rng.uniform(0.7, 1.4, cpd.rates.shape))
    return result


def collapsed(hidden: Finite, statistics: Statistics) -> list[str]:
    """The states of a hidden variable that expect almost no rows."""
    counts = statistics.counts([hidden.name]).dense()
    return [s for s, n in zip(hidden.states, counts, strict=True) if n < FEW]


def relabelled(dag: Dag, hidden: str, best: Mapping[str, Cpd], other: Mapping[str, Cpd]) -> Array | None:
    """Which state of another optimum each state of the best one is, by what they say about the children; None without any."""
    from scipy.optimize import linear_sum_assignment

    mine, theirs = profiles(dag, hidden, best), profiles(dag, hidden, other)
    if mine is None or theirs is None:
        return None
    distance = np.abs(mine[:, None, :] - theirs[None, :, :]).sum(axis=2)
    return np.asarray(linear_sum_assignment(distance)[1])
