"""Sequences that begin as their transition settles: M-steps of parameters whose stationary distribution is the start.

Of lines, of numbers:

    Q(θ) = Σ over nodes E ln p(x | parents) + E ln Normal(z₀; μ(θ), Σ(θ)),     μ = F μ + f,  Σ = F Σ Fᵀ + Q

It has no closed form, and is climbed from the better of the lines so far and those without first steps, so that EM never falls.
Its gradient goes back through both equations: with A = ∂/∂Σ and g = ∂/∂μ of the last term,

    Λ = Fᵀ Λ F + A,   ∂/∂Q = Λ,   ∂/∂f = (I − F)⁻ᵀ g,   ∂/∂F = 2 Λ F Σ + (∂/∂f) μᵀ

Of tables, of states:

    F(θ) = Σ N ln θ + Σ γ₀ ln π(θ),     π = π M(θ)

N the expected counts of transitions (with imagined ones), γ₀ how often each joint state is expected to be the first. It has no
closed form, either, and is climbed in log-odds from the parameters so far. ∂ (γ₀ · ln π) / ∂ ln θ are counts, too
(`pull_of_start`): N + these are, divided by θ, the gradient of ln p(observed).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.basis.arrays import Array
from suffice.basis.libraries import sc
from suffice.basis.variables import Finite
from suffice.engines.gather import Groups
from suffice.errors import FitError, ModelError, listing
from suffice.errors.remedies import FIRST_STATIONARY, FREE
from suffice.families.conditional_gaussian import LOG_2PI, ConditionalGaussian
from suffice.families.protocol.family import Estimate
from suffice.graphs.lagged import variable_and_lag
from suffice.incomplete.chains.chain_rows import FIRST
from suffice.incomplete.chains.chain_states import Phase
from suffice.incomplete.chains.factored_rows import ChainLayout
from suffice.incomplete.chains.linear_rows import stationary_moments, transition
from suffice.incomplete.chains.linear_states import LinearSpace, LinearTerm
from suffice.incomplete.components import Line, Theta
from suffice.incomplete.first_slices import pull_of_start, stationary
from suffice.learning.chains.chain_task import ChainTask
from suffice.learning.incomplete.objective import HeldEntries
from suffice.learning.incomplete.reduced_task import ExpectedStatistic
from suffice.statistics import Moments
from suffice.statistics.moments import Spread

Slopes = dict[str, tuple[float, Array, float]]
"""By node: the derivatives by intercept, coefficients, and ln variance."""

STABLE = 0.95
"""At a start the coefficients of a number, in size, add up to at most this."""


def pull(space: LinearSpace, lines: Mapping[str, Line], first: Groups) -> tuple[float, Slopes]:
    """E ln p of the first z, and its derivatives by the lines of the unknown numbers."""
    from scipy.linalg import solve_discrete_lyapunov

    mu, Sigma = stationary_moments(space, lines)
    own = transition(space, space.terms[-1], lines, {n: np.zeros(1, np.int64) for n in space.unknown}, 1)
    F, T, now, m = own.F[0], own.solve[0], own.now, space.size
    W, off = float(first.spread.weight.sum()), first.spread.mean[0] - mu
    inverse = np.linalg.inv(Sigma)
    scatter = first.spread.scatter[0] + W * np.outer(off, off)
    logs = -0.5 * (W * (m * LOG_2PI + np.linalg.slogdet(Sigma)[1]) + float((inverse * scatter).sum()))
    A = inverse @ scatter @ inverse - W * inverse
    by_Q = np.asarray(solve_discrete_lyapunov(F.T, (A + A.T) / 4.0))
    by_f = np.linalg.solve(np.eye(m) - F.T, W * inverse @ off)
    by_F = 2.0 * by_Q @ F @ Sigma + np.outer(by_f, mu)
    return logs, _by_line(space, lines, T, (by_F[now], by_f[now], by_Q[np.ix_(now, now)]))


def _by_line(space: LinearSpace, lines: Mapping[str, Line], T: Array, slopes: tuple[Array, Array, Array]) -> Slopes:
    """Derivatives by F, f and Q of the present numbers, taken back to lines: F = T B, f = T a, Q = T V Tᵀ, T = (I − B₀)⁻¹."""
    by_F, by_f, by_Q = slopes
    m, terms = space.size, _moving(space)
    a, v = np.array([lines[t.key].intercept[0] for t in terms]), np.array([lines[t.key].variance[0] for t in terms])
    B = np.zeros((len(terms), 2 * m))
    for i, term in enumerate(terms):
        for j, place in term.inside:
            B[i, place] = lines[term.key].coefficients[0, j]
    by_T = by_F @ B[:, m:].T + np.outer(by_f, a) + 2.0 * by_Q @ T * v
    by_B = np.zeros_like(B)
    by_B[:, m:] = T.T @ by_F
    by_B[:, [space.place[n, 0] for n in space.unknown]] = T.T @ by_T @ T.T
    by_a, by_v = T.T @ by_f, np.diag(T.T @ by_Q @ T)
    return {
        term.key: (float(by_a[i]), np.array([by_B[i, place] for _, place in term.inside]), float(by_v[i] * v[i]))
        for i, term in enumerate(terms)
    }


def _moving(space: LinearSpace) -> list[LinearTerm]:
    """The nodes of the unknown numbers, in their order; all parents of each are part of the state."""
    own = {t.name: t for t in space.terms[-1] if t.moving}
    return [own[n] for n in space.unknown]


@dataclass(frozen=True, eq=False)
class SettledLines:
    """What the M-step climbs. `parts` has for each node moments and how many rows stand behind its variance: seen, imagined."""

    space: LinearSpace
    first: Groups
    parts: Mapping[str, list[tuple[Groups, float]]]
    held: Mapping[str, tuple[HeldEntries, ConditionalGaussian, Array]]
    """Known entries, where they come from, and c/s of the parents."""

    def value(self, theta: Theta) -> float:
        """Q; −∞ where nothing settles."""
        try:
            return self._slopes(theta)[0]
        except (ModelError, np.linalg.LinAlgError):
            return -np.inf

    def _slopes(self, theta: Theta) -> tuple[float, Slopes]:
        lines = theta.lines
        total, slopes = pull(self.space, lines, self.first)
        for key, parts in self.parts.items():
            a, b, v = (part[0] for part in lines[key])
            by_a, by_b, by_v = slopes[key]
            for groups, rows in parts:
                for N, mean, scatter in zip(groups.spread.weight, groups.spread.mean, groups.spread.scatter, strict=True):
                    c = np.append(-b, 1.0)
                    off, Sc = float(c @ mean - a), scatter @ c
                    R = float(c @ Sc + N * off**2)
                    total += -0.5 * (rows * (LOG_2PI + np.log(v)) + R / v)
                    by_a += N * off / v
                    by_b = by_b + (Sc[:-1] + N * off * mean[:-1]) / v
                    by_v += 0.5 * (R / v - rows)
            slopes[key] = by_a, by_b, by_v
        return total, slopes

    def climb(self, old: Theta, plain: Theta) -> Theta:
        """The best lines that were found; never worse than the old ones."""
        from scipy.optimize import minimize

        begin = max((old, plain), key=self.value)
        worst, x, widths = -self.value(begin), self._vector(begin), list[float]()
        for key, parts in self.parts.items():  # about the standard error of each coordinate, if all were seen
            line = begin.lines[key]
            N = max(1.0, sum(float(g.spread.weight.sum()) for g, _ in parts))
            widths += [np.sqrt(line.variance[0] / N)] * (1 + line.coefficients.shape[1]) + [np.sqrt(2.0 / N)]
        scale = np.array(widths)

        def loss(z: Array) -> tuple[float, Array]:
            try:
                with np.errstate(all="ignore"):
                    total, slopes = self._slopes(self._theta(plain, x + z * scale))
            except (ModelError, np.linalg.LinAlgError):
                return worst + 1e3 * (1.0 + abs(worst)), np.zeros_like(z)
            return -total, -self._free(slopes) * scale

        options: dict[str, Any] = {"maxiter": 100, "ftol": 1e-15, "gtol": 1e-9}
        found = minimize(loss, np.zeros_like(x), jac=True, method="L-BFGS-B", options=options)
        best = max((self._theta(plain, x + found.x * scale), self._theta(plain, x)), key=self.value)
        return max((best, self._theta(plain, self._vector(old))), key=self.value)

    def _vector(self, theta: Theta) -> Array:
        lines = theta.lines
        parts = ([lines[k].intercept[0], *lines[k].coefficients[0], np.log(lines[k].variance[0])] for k in self.parts)
        return np.concatenate([np.zeros(0), *map(np.array, parts)])

    def _theta(self, theta: Theta, vector: Array) -> Theta:
        """The parameters with other lines."""
        others, at = dict(theta.others), 0
        for key in self.parts:
            cpd: Any = others[key]
            k = cpd.coefficients.shape[-1]
            a, b, v = vector[at], vector[at + 1 : at + 1 + k], np.exp(vector[at + 1 + k])
            at += k + 2
            cpd = replace(cpd, intercept=np.full(cpd.intercept.shape, a), coefficients=b, variance=np.full(cpd.variance.shape, v))
            if key in self.held:
                held, start, ratio = self.held[key]
                cpd = held.put(cpd, start, ratio)
            others[key] = cpd
        return replace(theta, others=others)

    def _free(self, slopes: Slopes) -> Array:
        """The derivatives by the vector: what is known has none."""
        parts = []
        for key in self.parts:
            by_a, by_b, by_v = slopes[key]
            if key in self.held:
                held, _, ratio = self.held[key]
                by_b = by_b + by_a * ratio if held.intercept else by_b.copy()
                by_b[list(held.coefficients)] = 0.0
                by_a, by_v = 0.0 if held.intercept else by_a, 0.0 if held.variance else by_v
            parts.append(np.array([by_a, *by_b, by_v]))
        return np.concatenate([np.zeros(0), *parts])


def imagined_part(imagined: Moments, how: Estimate) -> tuple[Groups, float]:
    """What a prior adds to a node: its moments, and how many rows stand behind its variance."""
    prior = imagined.at(np.arange(1))
    rows = float(how.rows_behind(prior.df[0], prior.mean.shape[1]))
    spread = Spread(prior.count, prior.mean, np.zeros_like(prior.mean), prior.scatter)
    return Groups(np.zeros(1, np.int64), spread, np.zeros((1, 0))), rows


def pull_moments(groups: Groups, line: Line, slopes: tuple[float, Array, float]) -> Groups:
    """Moments whose derivatives by a line are those of the old ones and these more: the gradient of ln p(observed)."""
    by_a, by_b, by_v = slopes
    weight, mean, scatter = groups.spread.weight, groups.spread.mean.copy(), groups.spread.scatter.copy()
    a, b, v = (part[0] for part in line)
    off = mean[0, -1] - b @ mean[0, :-1] - a
    mean[0, -1] += v * by_a / weight[0]
    across = v * by_b - v * by_a * mean[0, :-1]
    scatter[0, :-1, -1] += across
    scatter[0, -1, :-1] += across
    scatter[0, -1, -1] += 2.0 * v * by_v + weight[0] * (off**2 - (off + v * by_a / weight[0]) ** 2) + 2.0 * b @ across
    return replace(groups, spread=groups.spread._replace(mean=mean, scatter=scatter))


def steady_parameters(space: LinearSpace, theta: Theta) -> Theta:
    """The parameters, with coefficients of unknown numbers that are small enough for them to settle."""
    others = dict(theta.others)
    for term in _moving(space):
        cpd: Any = others[term.key]
        size = float(np.abs(cpd.coefficients).sum())
        if size > STABLE:
            others[term.key] = replace(cpd, coefficients=cpd.coefficients * STABLE / size)
    return replace(theta, others=others)


ROUNDS, SETTLED = 30, 1e-13
"""A fixed point is looked for in so many rounds, or until probabilities change by less than this."""
FARTHEST = 40.0
"""Log-odds stay within this range: e⁻⁴⁰ is no probability that data could tell from 0."""


def with_carriers(task: ChainTask, phases: Sequence[Phase], unknown: list[str]) -> list[str]:
    """The unknown variables and those that carry the chain on, observed or not: their joint distribution is what settles. Only
    templates of order 1 whose transitions hang on no observed cell settle to one distribution."""
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


def cell_pull(layout: ChainLayout, theta: Theta, first: Array) -> Array:
    """∂ (Σ γ₀ ln π) / ∂ ln θ by cell of all tables."""
    M, result = layout.settling(theta), np.zeros(theta.tables.n_cells)
    by_pair = pull_of_start(M, stationary(M), first)
    for table in layout.space.transitions[layout.phases[-1].number]:
        own = result[theta.tables.cells[table.key]]
        own += np.bincount(table.cells({})[0].reshape(-1), by_pair.reshape(-1), len(own))
    return result


def without_pull(layout: ChainLayout, s: ExpectedStatistic) -> ExpectedStatistic:
    """The counts of transitions alone."""
    steps = {name: step for name, step in s.steps.items() if name != FIRST}
    cells = np.maximum(s.cells - cell_pull(layout, s.theta, s.steps[FIRST]), 0.0)  # none is below 0 but by rounding
    return s._replace(cells=cells, steps=steps)


def settled_step(layout: ChainLayout, s: ExpectedStatistic, plain: Theta, counts: Array) -> Theta:
    """The parameters of the M-step: those of all other nodes as they are without first states, and tables of transitions that
    maximise F, climbed from the better of the plain estimate and the parameters so far."""
    from scipy.optimize import minimize

    first: Array = s.steps[FIRST]
    keys = [table.key for table in layout.space.transitions[layout.phases[-1].number]]
    sizes = {key: layout.nodes[key].finite[-1].n_states for key in keys}
    tables = [(plain.tables.cells[key], counts[plain.tables.cells[key]].reshape(-1, n)) for key, n in sizes.items()]

    def theta_of(eta: Array) -> Theta:
        cells, at = plain.cells.copy(), 0
        for place, own in tables:
            rows = eta[at : at + own.size].reshape(own.shape)
            at += own.size
            p = np.exp(rows - rows.max(axis=1, keepdims=True))
            cells[place] = (p / p.sum(axis=1, keepdims=True)).reshape(-1)
        return replace(plain, cells=cells)

    def value(theta: Theta) -> float:
        pi = stationary(layout.settling(theta))
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = sum(float(sc.xlogy(own, theta.cells[place].reshape(own.shape)).sum()) for place, own in tables)
            return logs + float(sc.xlogy(first, pi).sum())

    def loss(eta: Array) -> tuple[float, Array]:
        theta = theta_of(eta)
        pulls = cell_pull(layout, theta, first)
        slope = []
        for place, own in tables:
            total = own + pulls[place].reshape(own.shape)
            p = theta.cells[place].reshape(own.shape)
            slope.append((total - total.sum(axis=1, keepdims=True) * p).reshape(-1))
        return -value(theta), -np.concatenate(slope)

    def coordinates(theta: Theta) -> Array:
        parts = []
        for place, own in tables:
            logs = np.log(np.maximum(theta.cells[place].reshape(own.shape), 1e-300))
            parts.append(np.maximum(logs - logs.max(axis=1, keepdims=True), -FARTHEST).reshape(-1))
        return np.concatenate(parts)

    cells = plain.cells.copy()
    for place, _ in tables:
        cells[place] = s.theta.cells[place]
    old = replace(plain, cells=cells)
    begin = max((old, plain), key=value)
    point = _fixed_point(layout, plain, first, counts, [place for place, _ in tables])
    if value(point) >= value(begin):
        return point
    options: dict[str, Any] = {"maxiter": 200, "ftol": 1e-15, "gtol": 1e-9 * max(1.0, float(first.sum()))}
    bounds = [(-FARTHEST, FARTHEST)] * sum(own.size for _, own in tables)
    found = minimize(loss, coordinates(begin), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    best = theta_of(found.x)
    return best if value(best) >= value(old) else old


def _fixed_point(layout: ChainLayout, theta: Theta, first: Array, counts: Array, places: Sequence[slice]) -> Theta:
    """θ ∝ N + pull(θ), as it is where F has its maximum. The pull is small beside counts of more than a few steps, and then a few
    rounds lead there."""
    own = np.zeros(len(counts), np.bool_)
    for place in places:
        own[place] = True
    for _ in range(ROUNDS):
        weights = np.where(own, np.maximum(counts + cell_pull(layout, theta, first), 0.0), 0.0)
        # a cell whose pull is stronger than its count falls slowly: the pull weakens with it
        slow = theta.tables.normalise(np.maximum(theta.tables.normalise(weights), 0.1 * theta.cells))
        cells = np.where(own, slow, theta.cells)
        change, theta = float(np.abs(cells - theta.cells).max()), replace(theta, cells=cells)
        if change < SETTLED:
            break
    return theta
