"""Sequences that begin as their transition settles: the M-step of tables whose stationary distribution is the start.

    F(θ) = Σ N ln θ + Σ γ₀ ln π(θ),     π = π M(θ)

N the expected counts of transitions (with imagined ones), γ₀ how often each joint state is expected to be the first. It has no
closed form, and is climbed in log-odds from the parameters so far, so that EM never falls. ∂ (γ₀ · ln π) / ∂ ln θ are counts,
too (`pull_of_start`): N + these are, divided by θ, the gradient of ln p(observed).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from suffice.basis.arrays import Array
from suffice.basis.libraries import sc
from suffice.errors import FitError, listing
from suffice.errors.remedies import FIRST_STATIONARY, FREE
from suffice.graphs.lagged import variable_and_lag
from suffice.incomplete.chains.chain_rows import FIRST
from suffice.incomplete.chains.chain_states import Phase
from suffice.incomplete.chains.factored_rows import ChainLayout
from suffice.incomplete.components import Theta
from suffice.incomplete.first_slices import pull_of_start, stationary
from suffice.learning.chains.chain_task import ChainTask
from suffice.learning.incomplete.reduced_task import EStep, ExpectedStatistic
from suffice.variables import Finite

ROUNDS, SETTLED = 30, 1e-13
"""A fixed point is looked for in so many rounds, or until probabilities change by less than this."""

FARTHEST = 40.0
"""Log-odds stay within this range: e⁻⁴⁰ is no probability that data could tell from 0."""


def with_carriers(task: ChainTask, phases: Sequence[Phase], unknown: list[str]) -> list[str]:
    """The unknown variables and those that carry the chain on, observed or not: their joint distribution is what settles.

    Only templates of order 1 whose transitions hang on no observed cell settle to one distribution.
    """
    if task.template.order != 1:
        raise FitError(f"{FIRST_STATIONARY} is for templates whose largest lag is 1, and this one has {task.template.order}")
    carriers = sorted({*unknown, *(n for n in task.template.nodes if task.template.own_at(n, 0))})
    for name in carriers:
        node = phases[-1].nodes[name]
        others = [v.name for v in node.parents if variable_and_lag(v.name)[0] not in carriers]
        if others:
            raise FitError(
                f"{FIRST_STATIONARY} needs transitions that hang on nothing but the states, and {name!r} depends on "
                f"{listing(others)}: use {FREE}"
            )
        if not isinstance(task.variables[name], Finite) or not node.by_table:
            raise FitError(f"{FIRST_STATIONARY} is for tables or for numbers that are all Gaussian, and {name!r} is neither")
    return carriers


def _pull(layout: ChainLayout, theta: Theta, first: Array) -> Array:
    """∂ (Σ γ₀ ln π) / ∂ ln θ by cell of all tables."""
    M, result = layout.settling(theta), np.zeros(theta.tables.n_cells)
    pull = pull_of_start(M, stationary(M), first)
    for table in layout.space.transitions[layout.phases[-1].number]:
        own = result[theta.tables.cells[table.key]]
        own += np.bincount(table.cells({})[0].reshape(-1), pull.reshape(-1), len(own))
    return result


def with_pull(layout: ChainLayout, found: EStep) -> EStep:
    """An E-step whose counts have the pull of the first states in them."""
    s: ExpectedStatistic = found.statistic
    return found._replace(statistic=s._replace(cells=s.cells + _pull(layout, s.theta, s.steps[FIRST])))


def without_pull(layout: ChainLayout, s: ExpectedStatistic) -> ExpectedStatistic:
    """The counts of transitions alone."""
    steps = {name: step for name, step in s.steps.items() if name != FIRST}
    cells = np.maximum(s.cells - _pull(layout, s.theta, s.steps[FIRST]), 0.0)  # none is below 0 but by rounding
    return s._replace(cells=cells, steps=steps)


def settled_step(layout: ChainLayout, s: ExpectedStatistic, plain: Theta, counts: Array) -> Theta:
    """The parameters of the M-step: those of all other nodes as they are without first states, and tables of transitions that
    maximise F, climbed from the better of the plain estimate and the parameters so far."""
    from scipy.optimize import minimize

    first: Array = s.steps[FIRST]
    keys = [table.key for table in layout.space.transitions[layout.phases[-1].number]]
    places = [plain.tables.cells[key] for key in keys]
    sizes = [layout.nodes[key].finite[-1].n_states for key in keys]
    N = [counts[place].reshape(-1, size) for place, size in zip(places, sizes, strict=True)]

    def theta_of(eta: Array) -> Theta:
        cells, at = plain.cells.copy(), 0
        for place, own in zip(places, N, strict=True):
            rows = eta[at : at + own.size].reshape(own.shape)
            at += own.size
            p = np.exp(rows - rows.max(axis=1, keepdims=True))
            cells[place] = (p / p.sum(axis=1, keepdims=True)).reshape(-1)
        return replace(plain, cells=cells)

    def value(theta: Theta) -> float:
        pi = stationary(layout.settling(theta))
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = sum(
                float(sc.xlogy(own, theta.cells[place].reshape(own.shape)).sum()) for own, place in zip(N, places, strict=True)
            )
            return logs + float(sc.xlogy(first, pi).sum())

    def loss(eta: Array) -> tuple[float, Array]:
        theta = theta_of(eta)
        pull = _pull(layout, theta, first)
        slope = []
        for own, place in zip(N, places, strict=True):
            total = own + pull[place].reshape(own.shape)
            p = theta.cells[place].reshape(own.shape)
            slope.append((total - total.sum(axis=1, keepdims=True) * p).reshape(-1))
        return -value(theta), -np.concatenate(slope)

    def coordinates(theta: Theta) -> Array:
        parts = []
        for place, own in zip(places, N, strict=True):
            logs = np.log(np.maximum(theta.cells[place].reshape(own.shape), 1e-300))
            parts.append(np.maximum(logs - logs.max(axis=1, keepdims=True), -FARTHEST).reshape(-1))
        return np.concatenate(parts)

    old = replace(plain, cells=np.concatenate([s.theta.cells]))
    begin = max((old, plain), key=value)
    point = _fixed_point(layout, plain, first, counts, places)
    if value(point) >= value(begin):
        return point
    options: dict[str, Any] = {"maxiter": 200, "ftol": 1e-15, "gtol": 1e-9 * max(1.0, float(first.sum()))}
    found = minimize(
        loss,
        coordinates(begin),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-FARTHEST, FARTHEST)] * sum(n.size for n in N),
        options=options,
    )
    best = theta_of(found.x)
    best = best if value(best) >= value(old) else old
    cells = plain.cells.copy()
    for place in places:
        cells[place] = best.cells[place]
    return replace(plain, cells=cells)


def _fixed_point(layout: ChainLayout, theta: Theta, first: Array, counts: Array, places: Sequence[slice]) -> Theta:
    """θ ∝ N + pull(θ), as it is where F has its maximum. The pull is small beside counts of more than a few steps, and then a few
    rounds lead there."""
    own = np.zeros(len(counts), np.bool_)
    for place in places:
        own[place] = True
    for _ in range(ROUNDS):
        weights = np.where(own, np.maximum(counts + _pull(layout, theta, first), 0.0), 0.0)
        # a cell whose pull is stronger than its count falls slowly: the pull weakens with it
        slow = theta.tables.normalise(np.maximum(theta.tables.normalise(weights), 0.1 * theta.cells))
        cells = np.where(own, slow, theta.cells)
        change, theta = float(np.abs(cells - theta.cells).max()), replace(theta, cells=cells)
        if change < SETTLED:
            break
    return theta
