"""Hidden Markov models whose states share variances: the problem of `em`, with an M-step that is exact all the same.

    Tied        y_j = a_j[s] + b_j · y_<j + noise of variance v_j in all states s: b_j from Σ_s scatter[s], v_j = residual / Σ N
    Spherical   y_j = m_j[s] + noise of variance v[s], for all columns j: v[s] = Σ_j scatter_j[s] / Σ_j N_j[s]

With a prior the formulas are those of `learning.latent.mixture_normals`. `sticky` imagines so many more steps that stay in their
state, besides what the prior imagines.

At a start states emit what the classes of a mixture do at its starts, and tend to stay. A mixture forgets the order of the steps,
so its classes are found from a sample of them; what it cannot say, how long states last, is drawn. Where labels show some states,
or regressions are among the columns, a start is one of `em` instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from suffice.basis.arrays import Array
from suffice.basis.variables import Finite
from suffice.engines.engine import is_missing
from suffice.engines.gather import Groups
from suffice.errors import DataError, FitError
from suffice.families.conditional_gaussian import ConditionalGaussian, SharedGaussian
from suffice.families.priors.priors import Dirichlet, Gamma, NormalInverseGamma, as_prior
from suffice.families.protocol.family import Cpd, Mean
from suffice.graphs.lagged import unrolled_name
from suffice.incomplete.chains.chain_rows import FIRST
from suffice.incomplete.components import NodeFamily, Theta
from suffice.incomplete.numbers.units import no_groups
from suffice.learning.chains.chain_problem import ChainProblem
from suffice.learning.chains.stationary import without_pull
from suffice.learning.incomplete.objective import COLLAPSED, VANISHED, Collapsed, refuse_collapse, regression_of
from suffice.learning.incomplete.reduced_task import ExpectedStatistic
from suffice.learning.latent.mixture_normals import log_prior_of_shared_line, positive_df, shared_line
from suffice.learning.latent.mixture_parts import CollapsedClass
from suffice.learning.latent.mixture_setup import MixtureProblem, MixtureRows
from suffice.learning.latent.mixture_start import SAMPLE, MixtureStarts
from suffice.statistics import Counts
from suffice.statistics.counts import sizes
from suffice.statistics.moments import Spread


@dataclass(frozen=True, eq=False)
class StateProblem(ChainProblem):
    """The parameters of a hidden Markov model. `tied` and `spherical` are columns in the order in which each has those before it
    as parents, or would have."""

    tied: tuple[str, ...] = ()
    spherical: tuple[str, ...] = ()

    def sticking(self, name: str, steps: float) -> StateProblem:
        """The same, with so many imagined steps that stay in each state of a variable."""
        if not steps:
            return self
        state: Any = self.nodes[name].child
        said = self.imagined[name]
        alpha = np.full((state.n_states,) * 2, self.estimate.less) if said is None else said.dense()
        more = Counts(self.nodes[name].finite, alpha + steps * np.eye(state.n_states))
        return replace(self, imagined={**self.imagined, name: more})

    def state_counts(self, name: str, statistic: ExpectedStatistic) -> Array:
        """How many steps are expected in each state of a variable, first steps included."""
        s = statistic if FIRST not in statistic.steps else without_pull(self._layout, statistic)
        cells = s.cells[self.tables.cells[name]]
        total = cells.reshape(-1, self.nodes[name].finite[-1].n_states).sum(axis=0) + statistic.steps.get(FIRST, 0.0)
        first = unrolled_name(name, 0)
        return np.asarray(total + s.cells[self.tables.cells[first]] if first in self.nodes else total)

    def _estimate(self, node: NodeFamily, s: ExpectedStatistic) -> Cpd:
        if node.name in self.tied:
            return self._tied_line(node, s)
        return self._spherical_line(node, s) if node.name in self.spherical else super()._estimate(node, s)

    def _log_prior(self, node: NodeFamily, cpd: Cpd) -> float:
        said = self.imagined_scaled[node.name]
        if node.name not in self.tied or said is None:
            return super()._log_prior(node, cpd)
        one, extra = said.at(np.arange(1)), self._extra(node, cpd.intercept.size)
        total = log_prior_of_shared_line(one, one.mean[0], cpd.intercept, cpd.coefficients[0], float(cpd.variance[0]), extra)
        return total - float((one.df[0] + extra) * np.log(self.units.scale[node.name]))

    def _extra(self, node: NodeFamily, n_means: int) -> float:
        """What is added to the imagined df: e of the formula in `mixture_normals`."""
        return float(self.estimate.rows_behind(0.0, n_means + len(node.reals) - 1))

    def _tied_line(self, node: NodeFamily, s: ExpectedStatistic) -> Cpd:
        old, said = s.theta.others[node.name], self.imagined_scaled[node.name]
        N, mean, _, scatter = self._by_state(node, s)
        if said is not None:
            one = said.at(np.arange(1))
            a, b, v = shared_line(one, one.mean[0], N, mean, scatter, self._extra(node, len(N)))
        else:
            live = VANISHED * min(1.0, float(N.sum())) <= N
            S = scatter[live].sum(axis=0)
            r, total = regression_of(node, None, S, node.reals[:-1]), float(N[live].sum())
            refuse_collapse(node, None, r, total, self.units.variance[node.name], S)
            b, v = r.coefficients, r.residual / total
            a = np.where(live, mean[:, -1] - mean[:, :-1] @ b, old.intercept)
        return ConditionalGaussian(node.child, node.parents, a, np.tile(b, (len(N), 1)), np.full(len(N), v))

    def _spherical_line(self, node: NodeFamily, s: ExpectedStatistic) -> Cpd:
        old = s.theta.others[node.name]
        weight, square = np.zeros(old.variance.shape), np.zeros(old.variance.shape)
        for name in self.spherical:
            N, _, own = self._column(self.nodes[name], s)
            weight, square = weight + N, square + own * self.units.scale[name] ** 2
        N, mean, _ = self._column(node, s)
        unit, live = self.units.scale[node.name] ** 2, VANISHED * min(1.0, float(weight.sum())) <= weight
        variance = np.where(live, square / np.where(live, weight, 1.0), old.variance * unit)
        if self.imagined_scaled[node.name] is None:
            overall = np.mean([self.units.variance[n] * self.units.scale[n] ** 2 for n in self.spherical])
            if (narrow := ~(variance > COLLAPSED * overall)).any():
                state: Any = self.nodes[node.name].finite[0]
                where = f"{state.name}={state.states[int(np.argmax(narrow))]!r}"
                raise Collapsed(node.name, where, "its variance is falling to zero")
            mean = np.where(live, mean, old.intercept)
        return ConditionalGaussian(node.child, node.parents, mean, np.zeros((len(N), 0)), variance / unit)

    def _column(self, node: NodeFamily, s: ExpectedStatistic) -> tuple[Array, Array, Array]:
        """Weight, mean and scatter of a column in each state, with what the prior imagines."""
        N, middle, _, scatter = self._by_state(node, s)
        mean, S, said = middle[:, 0], scatter[:, 0, 0], self.imagined_scaled[node.name]
        if said is None:
            return N, mean, S
        one = said.at(np.arange(1))
        kappa, m0, S0, df = one.count[0], one.mean[0, 0], one.scatter[0, 0, 0], one.df[0]
        S = S + (S0 + kappa * N / (kappa + N) * (mean - m0) ** 2)
        return positive_df(N + df + self._extra(node, 1), node.name), (N * mean + kappa * m0) / (kappa + N), S

    def _by_state(self, node: NodeFamily, s: ExpectedStatistic) -> Spread:
        """The expected moments of a node in each of its states."""
        groups = s.moments.get(node.name) or no_groups(len(node.reals))
        return groups.over(np.arange(node.n_cells)).spread

    def _shares(self, theta: Theta) -> bool:
        return not (self.tied or self.spherical)

    def _tie(self, theta: Theta) -> Theta:
        """The same parameters, what states or columns share being the mean of what they have."""
        others: dict[str, Any] = dict(theta.others)
        for name in self.tied:
            cpd = others[name]
            b, v = (np.broadcast_to(x.mean(axis=0), x.shape) for x in (cpd.coefficients, cpd.variance))
            others[name] = replace(cpd, coefficients=b, variance=v)
        units = {n: self.units.scale[n] ** 2 for n in self.spherical}
        common = sum(others[n].variance * units[n] for n in self.spherical) / max(1, len(self.spherical))
        others |= {n: replace(others[n], variance=common / units[n]) for n in self.spherical}
        return replace(theta, others=others)

    def _fit_node(self, node: NodeFamily, cpd: Any, statistic: ExpectedStatistic, complete: bool) -> Cpd:
        fitted: Any = super()._fit_node(node, cpd, statistic, complete)
        for columns, tied in ((self.tied, True), (self.spherical, False)):
            if node.name in columns:
                return SharedGaussian.of(fitted, columns.index(node.name), tied=tied)
        return fitted  # type: ignore[no-any-return]


def permuted_statistic(
    problem: StateProblem, statistic: ExpectedStatistic, theta: Theta, order: list[int], names: frozenset[str]
) -> ExpectedStatistic:
    """What is expected if the variables of these names have their states in another order, in which `theta` are the parameters.
    There must be no families that take steps of their own."""
    cells, moments, rank = statistic.cells.copy(), dict(statistic.moments), np.argsort(order)
    for name, node in problem.nodes.items():
        axes = [axis for axis, v in enumerate(node.finite) if v.name in names]
        if node.by_table:
            own = cells[problem.tables.cells[name]].reshape(sizes(node.finite))
            for axis in axes:
                own = np.take(own, order, axis=axis)
            cells[problem.tables.cells[name]] = own.reshape(-1)
        elif axes and name in moments:
            digits = list(np.unravel_index(moments[name].keys, sizes(node.finite)))
            for axis in axes:
                digits[axis] = rank[digits[axis]]
            keys = np.ravel_multi_index(digits, sizes(node.finite))
            by_key = np.argsort(keys, kind="stable")
            parts = Spread(*(part[by_key] for part in moments[name].spread))
            moments[name] = Groups(keys[by_key], parts, moments[name].sums[by_key])
    return ExpectedStatistic(theta, cells, moments, {})


def permute_states(cpd: Any, order: list[int], names: frozenset[str]) -> Any:
    """A distribution whose variables of these names, child or parents, have their states in another order."""
    finite = [v for v in (*cpd.parent_variables, cpd.child) if isinstance(v, Finite)]
    changed: dict[str, Array] = {}
    for axis, v in enumerate(finite):
        if v.name in names:
            for part in cpd.arrays:
                changed[part] = np.take(changed.get(part, getattr(cpd, part)), order, axis=axis)
    return replace(cpd, **changed) if changed else cpd


STAY = 0.6, 0.95
"""Between these lies the share of a state that stays, at most starts."""
WEAK = (Dirichlet(1), NormalInverseGamma(), Gamma())
"""Under this prior a class of a start has no variance and no rate of 0."""


@dataclass(frozen=True, eq=False)
class StateStarts:
    """Starts of one problem: `hidden` is the variable of the states, `kinds` of covariances as `mixture` takes them."""

    problem: StateProblem
    hidden: Finite
    kinds: Mapping[str, Any]
    seed: int

    def draw(self, number: int, rng: np.random.Generator) -> Theta:
        """Every other start moves its centres to the means of their rows; every third may also have states that never stay."""
        theta = self.problem.random(rng)
        if self._mixture is not None:  # emissions are those of classes of a mixture if they can be
            with suppress(CollapsedClass):
                drawn = self._mixture.draw(rng, number % 2 == 0)
                cpds = self._mixture.mixture.cpds(drawn, np.ones(self.hidden.n_states))
                del cpds[self.hidden.name]
                theta = self.problem.parameters({**self.problem.cpds(theta), **cpds})
        stay = rng.uniform(*(STAY if number % 3 < 2 else (0.0, STAY[1])), self.hidden.n_states)
        own = self.problem.tables.cells[self.hidden.name]
        cells = theta.cells.copy()
        table = cells[own].reshape(-1, self.hidden.n_states)
        cells[own] = ((1.0 - stay)[:, None] * table + np.diag(stay)).reshape(-1)
        return replace(theta, cells=cells)

    @cached_property
    def _mixture(self) -> MixtureStarts | None:
        data, hidden = self.problem.sequences.data, self.hidden
        data = data.select([n for n in self.problem.template.topological_order if n in data.columns])  # as regressions follow
        if hidden.name in data.columns or any(node.iterative for node in self.problem.nodes.values()):
            return None
        sample = data.sample(SAMPLE, self.seed)
        shown = ~np.logical_and.reduce([is_missing(c) for c in sample.columns.values()])
        try:  # a column may be missing in the whole sample
            table = MixtureRows.of(data.of_rows(sample.take(np.flatnonzero(shown))))
            mixture: MixtureProblem = table.mixture(hidden, self.kinds, as_prior(WEAK), Mean())
            return MixtureStarts(mixture, self.seed)
        except (DataError, FitError):
            return None
