"""Incomplete data of one graph, reduced once to what iterations need: what `em`, `gradient` and the observed information work on.

E-step   expect(θ)       the statistics that the data is expected to have under θ, and ln p(observed | θ)
M-step   maximise(s)     the parameters that statistics and prior give: as in `fit`; of tables
                         θ = (N + α − m) / Σ (N + α − m),  α imagined counts, m = 1 for modes and else 0
objective                ln p(observed | θ) + log_prior(θ), which no iteration lowers

Parameters are a `Theta`: all tables in one array, and the distributions of other nodes, of columns that are centred and scaled
(`suffice.incomplete.numbers.units`). Nodes that share parameters add what is expected of them before the M-step; fixed ones stay.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from suffice.basis.arrays import Array
from suffice.basis.limits import check_room
from suffice.basis.variables import Finite, Real
from suffice.engines.engine import add_up
from suffice.errors import FitError, listing, note
from suffice.errors.remedies import BY_MEAN, PARTIAL, POOLED, SEPARATE, argument, ridge_of
from suffice.families.protocol.family import Cpd, Mode
from suffice.families.regression_charts import line_of
from suffice.families.regressions.glm_steps import between
from suffice.incomplete.components import Components, FlatTables, NodeFamily, Theta, bytes_of_parameters, log_likelihood, nodes_of
from suffice.incomplete.finite import FiniteComponents
from suffice.incomplete.numbers.mixed import MixedComponents, scaled_moments
from suffice.incomplete.numbers.patterns import POINTS, refuse_unanswerable
from suffice.incomplete.numbers.units import NO_UNITS, Units, moments_by_column, observed_cells, observed_sums, with_hidden
from suffice.learning.incomplete.hidden_numbers import NO_CONVENTIONS, Conventions, refuse_unlinked
from suffice.learning.incomplete.objective import VANISHED, common_line_of, normal_of, ratios
from suffice.learning.incomplete.reduced_task import EStep, ExpectedStatistic, ReducedTask, imagined_by, refuse_constants
from suffice.learning.incomplete.starts import Starts, indistinguishable_states
from suffice.learning.incomplete.task import Task, task_of
from suffice.models.chain import Chain
from suffice.models.networks import BayesNet
from suffice.models.parts.parameter_covariance import hidden_numbers
from suffice.models.parts.sharing import linked_names
from suffice.statistics import Counts, Moments, Statistics


@dataclass(frozen=True, eq=False)
class ParameterProblem(ReducedTask):
    """The parameters of a graph from incomplete rows: a task, whose rows are reduced."""

    @classmethod
    def of(cls, task: Task) -> ParameterProblem:
        """The rows of a task, reduced; with numbers they are passed over twice, first for the units of the columns."""
        for name, family in task.families.items():
            if family.iterative and family.dispersed and family.ridge:
                raise FitError(
                    f"{name!r} has a dispersion, and the ridge of {type(family).__name__} is in its units: EM would have no one "
                    f"objective to climb; leave the ridge out, {type(family).__name__}(), or fit it to complete rows"
                )
        finite = [v for v in task.variables.values() if isinstance(v, Finite)]
        with_numbers = len(finite) < len(task.variables)
        numbers = hidden_numbers(task.dag, task.variables, task.hidden) if with_numbers else ()
        if numbers:
            refuse_unlinked(task.dag, task.variables, numbers)
        nodes = nodes_of(task.dag, task.variables, task.families)
        if task.room < math.inf:
            check_room(task.room, bytes_of_parameters(nodes.values()), "EM", "take fewer parents, or fewer states")
        tables = FlatTables.of(finite, [node.finite for node in nodes.values() if node.by_table])
        seen = {n: v for n, v in task.variables.items() if n not in task.hidden}
        units = NO_UNITS
        if with_numbers:
            reals = tuple(n for n, v in seen.items() if not isinstance(v, Finite))
            spread = observed_cells(task.rows, reals, task.threads)
            observed = Units.of(spread, seen).with_common_units(linked_names(task.ties))
            units = with_hidden(observed, dict.fromkeys(numbers))
        components: Components
        if len(tables.families) == len(nodes):
            components = FiniteComponents.of(task.rows, tables, task.threads, task.room)
        else:
            refuse_unanswerable({**task.rows.missing, **dict.fromkeys(numbers, 1)}, task.dag, nodes)
            components = MixedComponents.of(task.rows, nodes, tables, units, task.threads, task.room)
        shown, prior = components.shown, task.prior
        imagined: dict[str, Any] = dict.fromkeys(nodes)
        if prior is not None:  # its defaults come from what the columns show
            one, zero, square = np.ones(1), np.zeros((1, 1)), np.ones((1, 1, 1))  # hidden numbers have mean 0 and variance 1
            moments = [Moments((), (n,), np.zeros(1, np.int64), one, zero, square) for n in numbers]
            if with_numbers:
                moments = [*moments_by_column(spread, seen, observed_sums(task.rows, seen, task.threads)), *moments]
            counts = [Counts((v,), shown.states[v.name]) for v in finite if v.name in shown.states]
            prior = prior.bind(task.variables, Statistics([*counts, *moments], shown.weight, seen.values()))
            imagined = imagined_by(nodes, prior, task.estimate)
        if with_numbers:
            refuse_constants(nodes, observed, spread, imagined, task.ties)
        if shown.n_empty:
            note(f"{shown.n_empty:,} rows have no observed cell: they say nothing, and are kept")
        own = {"nodes": nodes, "tables": tables, "units": units, "components": components, "imagined": imagined}
        return cls(**{**vars(task), **own, "output_units": units, "prior": prior})

    @cached_property
    def scaled(self) -> ParameterProblem:
        """The same problem, whose distributions and statistics are of scaled columns: for derivatives, which need all digits."""
        return replace(self, output_units=self.units.plain)

    def expect(self, theta: Theta) -> EStep:
        """One E-step."""
        e = self.components.expect(theta)
        return EStep(ExpectedStatistic(theta, e.cells, e.moments, e.steps), e.log_likelihood)

    def maximise(self, statistic: ExpectedStatistic) -> Theta:
        """One M-step."""
        s, imagined = self.for_each_node(statistic) if self.ties else statistic, self.imagined_cells
        weights = s.cells + imagined.more
        if self.estimate.less and weights.min(initial=0.0) < 0.0:
            cell = int(np.argmin(weights))
            raise FitError(
                f"the posterior has no mode: count and prior at {self.tables.describe(cell)} make {weights[cell] + 1.0:g}, "
                f"below 1; use {BY_MEAN} or a stronger prior"
            )
        others = {node.name: self._estimate(node, s) for node in self.others}
        cells = self.tables.normalise(weights)
        for name, belief in imagined.beliefs.items():
            cells[self.tables.cells[name]] = belief.probs(self._statistic_of(self.nodes[name], s), Mode()).reshape(-1)
        theta = Theta(self.tables, self._in_families(cells, weights) if self._chosen else cells, others)
        return self._hold_fixed(self.conventions.standardise(theta, s.moments) if self.conventions.loose else theta)

    @cached_property
    def conventions(self) -> Conventions:
        """What is fixed of hidden numbers."""
        if all(isinstance(v, Finite) for v in self.variables.values()):
            return NO_CONVENTIONS
        return Conventions.of(self, hidden_numbers(self.dag, self.variables, self.hidden))

    @property
    def still(self) -> tuple[str, ...]:
        """The nodes whose distributions stay as they are: known ones, and hidden numbers that are standard normal."""
        return (*self.fixed, *self.conventions.fixed)

    def to_convention(self, theta: Theta) -> Theta:
        """The same distribution of what is observed, hidden numbers by convention."""
        settled = self.conventions.settle(theta)
        if self.conventions.with_parents:
            settled = self.conventions.standardise(settled, self.expect(settled).statistic.moments)
        return settled if np.isclose(self.log_prior(settled), self.log_prior(theta), rtol=1e-12, atol=1e-9) else theta

    def shorter(self, before: Theta, after: Theta) -> Theta | None:
        """Half of the way of the regressions whose steps may be too long; None where there are none."""
        long = [node.name for node in self.others if node.iterative and not node.family.sure]
        own = {n: between(before.others[n], after.others[n]) for n in long}
        return replace(after, others={**after.others, **own}) if own else None

    def fall(self) -> FitError | None:
        """Where coefficients grow without end, the points that missing numbers are integrated over are too few at last."""
        growing = [node for node in self.others if node.iterative and not node.family.ridge]
        if not growing:
            return None
        kinds = {type(node.family).__name__ for node in growing}
        return FitError(
            f"the coefficients of {listing(node.name for node in growing)} grow without end, as where parents separate the "
            f"values, and missing numbers are no longer integrated closely enough; use {ridge_of(min(kinds))}, or fewer parents"
        )

    def log_prior(self, theta: Theta) -> float:
        """What the prior adds to the objective: 0 without one; Σ α ln θ for means, Σ (α − 1) ln θ for modes of tables; of a
        Gaussian the logarithm that its estimate maximises (see `suffice.learning.incomplete.objective`). A tie counts once."""
        _, _, once, places, beliefs = self.imagined_cells
        with np.errstate(divide="ignore"):
            total = float(once[places] @ np.log(theta.cells[places])) if len(places) else 0.0
        again = {node for tie in self.ties for node in tie.nodes[1:]}
        total += float(sum(b.log_prior(theta.cells[self.tables.cells[n]]) for n, b in beliefs.items() if n not in again))
        return total + sum(self._log_prior(node, theta.others[node.name]) for node in self.others if node.name not in again)

    def first(self) -> Theta:
        """Where to start without hidden variables: what the cells that are there say, smoothed."""
        return self._hold_fixed(self._tie(self._starts.first()))

    def random(self, rng: np.random.Generator) -> Theta:
        """A random start: families with hidden variables, or cells that are often missing, are drawn."""
        return self._hold_fixed(self._tie(self._starts.random(rng)))

    def starting_points(self, start: BayesNet | Chain | None, n: int, seed: int) -> Iterator[Theta]:
        """Where to start from: the network given, or what the data suggests, or at random; states of a hidden variable that say
        the same about its children are moved apart a little: EM would never tell them apart."""
        hidden = [name for name in self.hidden if isinstance(self.variables[name], Finite)]
        for i, own in enumerate(np.random.SeedSequence(seed).spawn(n)):
            rng = np.random.default_rng(own)
            if i == 0 and start is not None:
                theta = self.parameters({name: start[name] for name in start})
            else:
                theta = self.random(rng) if i or self.hidden else self.first()
            cpds, moved = self.cpds(theta) if hidden else {}, dict[str, Any]()
            for name in hidden:
                if pairs := indistinguishable_states(self.dag, self.variables, name, cpds):
                    states = listing(list(dict.fromkeys(s for pair in pairs for s in pair)))
                    note(
                        f"at the start the states {states} of the hidden variable {name!r} say the same about its children, and "
                        "EM would never tell them apart: the start was moved a little, at random"
                    )
                    moved |= {c: moved.get(c, cpds[c]).perturb(name, rng) for c in self.dag.children(name)}
            yield self.parameters({**cpds, **moved}) if moved else theta

    @cached_property
    def _starts(self) -> Starts:
        return Starts(self, self.conventions)

    def parts(self, n: int) -> list[ParameterProblem]:
        """The same rows in n parts, for incremental EM."""
        if self.fixed or self.entries:
            raise FitError(f"Incremental(batches) cannot be used with {argument('fixed')}: leave one of them out")
        if self.conventions.loose:
            raise FitError(
                "Incremental(batches) cannot be used with hidden numbers, whose scale moves with each M-step: leave it out"
            )
        if any(node.iterative for node in self.others):
            raise FitError("Incremental(batches) cannot be used here: a family takes steps of its own; leave it out")
        return [replace(self, components=part) for part in self.components.parts(n)]

    def join(self, statistics: Sequence[ExpectedStatistic]) -> ExpectedStatistic:
        """The statistics of all parts together."""
        cells, moments, steps = reduce(add_up, [(s.cells, s.moments, s.steps) for s in statistics])
        return ExpectedStatistic(statistics[-1].theta, cells, moments, steps)

    def free_energy(self, statistic: ExpectedStatistic, theta: Theta) -> float:
        """What ln p of the completed rows is expected to be, up to what does not change."""
        total = log_likelihood(statistic.cells, theta.cells)
        for node in self.others:
            if groups := statistic.moments.get(node.name):
                seen = scaled_moments(node, groups) if node.normal else self._statistic_of(node, statistic)
                total += theta.others[node.name].log_likelihood(seen)
        return total

    def rounding(self, theta: Theta) -> float:
        """By how much ln p may be off since a residual variance is a difference of numbers near 1: N δv/(2v), δv some 1e-15. So
        it is where parents all but determine a child, as when tied columns lie a million deviations apart. And ln p of a row may
        be off, and change as points move, where missing numbers are integrated over them."""
        variances = (line.variance for line in theta.lines.values())
        least = (float(np.min(v, where=v > 0, initial=np.inf)) for v in variances)
        by_rows = (v for node in self.others if node.by_rows for v in node.parents if isinstance(v, Real))
        d = len({v.name for v in by_rows if self.rows.missing.get(v.name)})
        integration = 0.0 if d == 0 else 1e-6 if d == 1 else 1e-4 if d in POINTS else 1e-2
        return 1e-15 * self.weight * sum(1.0 / v for v in least) + integration * self.weight

    def vector(self, theta: Theta) -> Array:
        """Coordinates to extrapolate in: of tables roots, since logarithms of vanishing probabilities run away."""
        return np.concatenate([np.sqrt(theta.cells), *(p.reshape(-1) for c in theta.others.values() for p in c.free_parts())])

    @cached_property
    def _shapes(self) -> Mapping[str, Cpd]:
        return self._starts.first().others if self.others else {}

    def from_vector(self, vector: Array) -> Theta:
        """Back from them; roots may have been led below 0, and rows are divided by their sums."""
        cells, vector = np.split(vector, [self.tables.n_cells])
        others: dict[str, Cpd] = {}
        for name, cpd in self._shapes.items():
            shapes = [part.shape for part in cpd.free_parts()]
            *parts, vector = np.split(vector, np.cumsum([math.prod(shape) for shape in shapes]))
            others[name] = cpd.with_parts([p.reshape(shape) for p, shape in zip(parts, shapes, strict=True)])
        return self._hold_fixed(self.theta_of(cells**2, others))

    def parameters(self, cpds: Mapping[str, Cpd]) -> Theta:
        """The parameters of these distributions; where tied nodes differ, one step on from them."""

        def scale(node: NodeFamily, cpd: Any) -> Cpd:
            if node.normal and node.regression:
                cpd = line_of(node.family.from_closed(cpd), self.known_of(node.name))
            return self._starts.fill_empty(node, self.output_units.inward_cpd(cpd) if node.normal else cpd)

        theta = self.with_known(Theta.of(self.nodes, self.tables, cpds, scale))
        theta = self.conventions.standardise_roots(theta)
        if self._chosen:  # any table is taken for weights of its cells
            theta = replace(theta, cells=self._in_families(theta.cells.copy(), theta.cells))
        return theta if self._shares(theta) else self._tie(theta)

    def network(self, theta: Theta, statistic: ExpectedStatistic, info: str) -> BayesNet:
        """The network of these parameters, which were estimated from this expected statistic."""
        seen, cpds = self.for_each_node(statistic) if self.ties else statistic, replace(self, output_units=self.units).cpds(theta)
        missing, held = self.rows.missing, {*self.fixed, *self.entries, *(name for tie in self.ties for name in tie.nodes)}
        own = {}
        for n, node in self.nodes.items():
            complete = n not in held and all(v.name in missing and not missing[v.name] for v in node.members)
            own[n] = self._fit_node(node, cpds[n], seen, complete)
        told: dict[str, Any] = {"prior": self.prior, "estimate": self.estimate, "fit_info": info, "incomplete": True}
        return BayesNet.of(self.dag, self.variables, own, **told, hidden=self.hidden, ties=self.ties)

    def _estimate(self, node: NodeFamily, s: ExpectedStatistic) -> Cpd:
        old: Any = s.theta.others[node.name]
        imagined, how = self.imagined_scaled[node.name], self.estimate
        groups = s.moments.get(node.name)
        if node.iterative:
            cpd: Cpd = node.family.advance(old, s.steps[node.name]) if node.name in s.steps else old
            return cpd
        if node.normal:
            if node.name in self.entries:
                start: Any = None if self.start is None else self.start.others[node.name]
                held, variance = self.entries[node.name], self.units.variance[node.name]
                return held.estimate(node, groups, old, start, ratios(node, self.units), variance)
            if node.regression:
                return common_line_of(node, groups, old, self.offset_slopes(node), self.units.variance[node.name])
            return normal_of(node, groups, old, imagined, how, self.units.variance[node.name], self.conventions.floor(node))
        new: Cpd = node.family.estimate(node.child, node.parents, self._statistic_of(node, s), imagined, how)
        weight = np.zeros(node.n_cells)
        if groups is not None:
            weight[groups.keys] = groups.spread.weight
        return new.keep_old(old, weight >= VANISHED)

    def _shares(self, theta: Theta) -> bool:
        """Whether tied nodes have the same parameters."""

        def numbers(name: str) -> list[Array]:
            by_table = self.nodes[name].by_table
            return [theta.cells[self.tables.cells[name]]] if by_table else theta.others[name].free_parts()

        pairs = ((numbers(tie.nodes[0]), numbers(node)) for tie in self.ties for node in tie.nodes[1:])
        return all(np.array_equal(x, y, equal_nan=True) for a, b in pairs for x, y in zip(a, b, strict=True))

    def _tie(self, theta: Theta) -> Theta:
        """A step of EM leads from any parameters to shared ones; nodes that share none stay where they are."""
        if not self.ties:
            return theta
        # sums of regressions add only where they are taken at the same parameters
        first = {node: tie.nodes[0] for tie in self.ties for node in tie.nodes if self.nodes[node].iterative}
        theta = replace(theta, others={**theta.others, **{n: theta.others[n].like(theta.others[m]) for n, m in first.items()}})
        shared = self.maximise(self.expect(theta).statistic)
        return self.with_nodes(theta, shared, [node for tie in self.ties for node in tie.nodes])

    def _hold_fixed(self, theta: Theta) -> Theta:
        if self.others:
            theta = self.with_known(self.conventions.put(theta))
        if self.start is None:
            return theta
        theta = self.with_nodes(theta, self.start, self.fixed)
        old: Mapping[str, Any] = self.start.others
        new: Mapping[str, Any] = theta.others
        put = {n: held.put(new[n], old[n], ratios(self.nodes[n], self.units)) for n, held in self.entries.items()}
        return replace(theta, others={**theta.others, **put}) if put else theta


def problem_of(dag: Any, data: Any, **options: Any) -> ParameterProblem:
    """The problem of fitting this graph to this data, with the options of `task_of`; what is wrong with them is said here."""
    if getattr(dag, "pools", ()):
        raise FitError(
            f"{PARTIAL} learns from complete rows how much groups differ, and some cells are missing, or variables hidden; use "
            f"{SEPARATE} or {POOLED}, or fill the cells in before"
        )
    return ParameterProblem.of(task_of(dag, data, **options))
