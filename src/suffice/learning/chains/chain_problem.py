"""The parameters of a template from sequences: the problem of `em`, whose E-step passes messages along the sequences.

Nodes are the variables of a slice, whose parameters all steps share, and those of the first slices that have distributions of
their own (`state[0]`). All else is as for rows: estimates, priors, starts, extrapolation, derivatives.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from suffice.basis.limits import check_room
from suffice.basis.variables import Finite, Variable
from suffice.engines.sequences.lagged import rename
from suffice.errors import FitError, note
from suffice.errors.remedies import FIRST_DIFFUSE, FIRST_STATIONARY, FREE, STATIONARY, Remedy
from suffice.families.protocol.family import Cpd
from suffice.graphs.lagged import variable_and_lag
from suffice.graphs.template import Template
from suffice.incomplete.chains.chain_rows import FIRST
from suffice.incomplete.chains.chain_states import Phase, StateSpace, parameter_nodes, refuse_regressions, unknowns
from suffice.incomplete.chains.factored_rows import ChainLayout
from suffice.incomplete.chains.hidden_chains import ChainComponents
from suffice.incomplete.chains.linear_rows import FIRST_NUMBERS, LinearLayout
from suffice.incomplete.chains.linear_states import linear_space
from suffice.incomplete.components import Components, FlatTables, NodeFamily, Theta, bytes_of_parameters
from suffice.incomplete.first_slices import Diffuse, First, Given, Stationary
from suffice.incomplete.numbers.units import Units, columns_below, moments_by_column, observed_cells, with_hidden
from suffice.learning.chains import stationary
from suffice.learning.chains.chain_task import ChainTask, chain_task_of, given_cpds
from suffice.learning.incomplete.hidden_numbers import NO_CONVENTIONS, Conventions
from suffice.learning.incomplete.objective import Collapsed, ratios
from suffice.learning.incomplete.problem import ParameterProblem
from suffice.learning.incomplete.reduced_task import EStep, ExpectedStatistic, imagined_by, refuse_beliefs, refuse_constants
from suffice.models.chain import Chain
from suffice.statistics import Counts, Statistics
from suffice.statistics.moments import Spread

INDEX = re.compile(r"(?<!^)\[-?\d+\]\Z")
"""What a column at a lag, or a node of a first slice, has behind the name of its variable."""


@dataclass(frozen=True, eq=False)
class ChainProblem(ParameterProblem):
    """The parameters of a template from sequences with hidden variables or missing cells."""

    template: Template = field(kw_only=True)
    sequences: Any = field(kw_only=True)
    slice_variables: Mapping[str, Variable] = field(kw_only=True)
    first_slices: First = field(kw_only=True)

    @classmethod
    def of_task(cls, task: ChainTask) -> ChainProblem:
        """The sequences of a task, reduced."""
        phases = task.phases
        for name, node in phases[-1].nodes.items():
            if node.regression and not node.family.sure:
                raise FitError(
                    f"{type(node.family).__name__} of {name!r} is fitted to complete steps, by fit, and takes no part in EM "
                    f"({Remedy('Logistic()', 'logistic')} does)"
                )
        settles = isinstance(task.first, Stationary)
        missing = {n: int(task.sequences.missing.get(n, 0)) for n in task.variables}
        incomplete = {n for n, m in missing.items() if m}
        unknown, numbers = unknowns(phases, incomplete, set(task.hidden))
        linear = linear_space(phases, task.first, unknown, numbers, incomplete)
        refuse_regressions(phases, incomplete)
        nodes = parameter_nodes(phases[-1:] if settles else phases)
        if linear is not None:
            numbers = list(linear.unknown)
            nodes = {n: node for n, node in nodes.items() if n not in linear.diffuse}
        elif isinstance(task.first, Diffuse):
            raise FitError(
                f"{FIRST_DIFFUSE} is of hidden or missing numbers that bear on later steps; there are none: use {FREE}"
            )
        elif settles:
            unknown = stationary.with_carriers(task, phases, unknown)
        check_room(task.room, bytes_of_parameters(nodes.values()), "EM", "take fewer parents, or fewer states")
        # the variables under all names that nodes use: their own, at their lags, and those of first slices
        names = dict.fromkeys([*task.variables, *(n for p in phases for n in p.columns), *nodes])
        aliases = {n: rename(task.variables[_base(n)], n) for n in names}
        seen = {n: v for n, v in aliases.items() if _base(n) in task.sequences.columns}
        spread, units = _units(task, seen)
        # hidden numbers are measured, under all of their names, as the columns below them are
        known = {n for n in task.sequences.columns if units.weight.get(n, 0.0) > 0 and n not in units.not_normal}
        empty = {n for n in aliases if not isinstance(aliases[n], Finite) and _base(n) not in known and _base(n) in task.hidden}
        below = columns_below(task.template, {_base(n) for n in empty}, known)
        observed, units = units, with_hidden(units, {n: below[_base(n)] for n in empty})
        finite = [v for v in aliases.values() if isinstance(v, Finite)]
        tables = FlatTables.of(finite, [node.finite for node in nodes.values() if node.by_table])
        space = StateSpace.of(phases, unknown)
        kept = space, tables, units, tuple(task.sequences.columns), _fully_shown(task, phases, unknown, numbers), settles
        layout = ChainLayout(*kept) if linear is None else LinearLayout(*kept, numbers=linear)
        components: Components = ChainComponents.of(task.sequences, layout, task.threads, task.room)
        shown = components.shown
        counts = [Counts((v,), shown.states[_base(v.name)]) for v in finite if _base(v.name) in shown.states]
        imagined, prior = dict[str, Any].fromkeys(nodes), task.prior
        if prior is not None:
            prior = prior.bind(aliases, Statistics([*counts, *moments_by_column(spread, seen)], shown.weight))
            imagined = imagined_by(nodes, prior, task.estimate)
        if settles or linear is not None:
            refuse_beliefs(imagined)
        refuse_constants(nodes, observed, spread, imagined, ())
        if shown.n_empty:
            note(f"{shown.n_empty:,} steps have no observed cell: they say nothing, and are kept")
        rows = task.sequences.lagged({n: _place(n) for n in seen})
        own: dict[str, Any] = {"nodes": nodes, "tables": tables, "units": units, "components": components, "imagined": imagined}
        own |= {"output_units": units, "template": task.template, "sequences": task.sequences, "slice_variables": task.variables}
        how = prior, task.estimate, task.families, task.threads
        problem = cls(task.template.parameter_graph, rows, aliases, task.hidden, *how, **own, first_slices=task.first)
        if not isinstance(task.first, Given):
            return problem
        cpds = given_cpds(task.first, task)  # first slices are known, and stay
        start = problem.parameters({**problem.cpds(problem._starts.first()), **cpds})
        return replace(problem, start=start, fixed=tuple(cpds), first_slices=Given(cpds))

    def expect(self, theta: Theta) -> EStep:
        """One E-step. Where first states are stationary, the counts are those whose quotients by θ are the gradient of ln L."""
        found = super().expect(theta)
        if (first := found.statistic.steps.get(FIRST)) is None:
            return found
        cells = found.statistic.cells + stationary.cell_pull(self._layout, theta, first)
        return found._replace(statistic=found.statistic._replace(cells=cells))

    def maximise(self, statistic: ExpectedStatistic) -> Theta:
        if FIRST_NUMBERS not in statistic.moments:
            if FIRST not in statistic.steps:
                return super().maximise(statistic)
            plain = stationary.without_pull(self._layout, statistic)
            counts, without = plain.cells + self.imagined_cells.more, super().maximise(plain)
            return stationary.settled_step(self._layout, statistic, without, counts)
        space = self._layout.numbers  # type: ignore[attr-defined]
        keys = [n for n in space.unknown if n not in self.fixed]
        parts = {n: [(statistic.moments[n], float(statistic.moments[n].spread.weight.sum()))] for n in keys}
        for n in (n for n in keys if self.imagined_scaled[n] is not None):
            parts[n].append(stationary.imagined_part(self.imagined_scaled[n], self.estimate))
        start: Any = self.start
        held = {n: (e, start.others[n], ratios(self.nodes[n], self.units)) for n, e in self.entries.items() if n in keys}
        climb = stationary.SettledLines(space, statistic.moments[FIRST_NUMBERS], parts, held)
        without = super().maximise(statistic)
        return climb.climb(self.with_nodes(without, statistic.theta, space.unknown), without)

    def _estimate(self, node: NodeFamily, s: ExpectedStatistic) -> Cpd:
        try:
            return super()._estimate(node, s)
        except Collapsed as error:
            if node.name in self.slice_variables:
                raise
            why = f"{error.why}, as so few sequences show how they begin: {FIRST_DIFFUSE} or {STATIONARY} needs no such thing"
            raise Collapsed(node.name, error.configuration, why) from None

    def first(self) -> Theta:
        """Where to start without hidden variables."""
        space = getattr(self._layout, "numbers", None)
        theta = super().first()
        return self._hold_fixed(stationary.steady_parameters(space, theta)) if space is not None and space.settles else theta

    def gradient_statistic(self, statistic: ExpectedStatistic) -> ExpectedStatistic:
        """What is expected, with what stationary first steps add to the gradient."""
        first = statistic.moments.get(FIRST_NUMBERS)
        if first is None:
            return statistic
        lines = statistic.theta.lines
        _, slopes = stationary.pull(self._layout.numbers, lines, first)  # type: ignore[attr-defined]
        pulled = {n: stationary.pull_moments(statistic.moments[n], lines[n], own) for n, own in slopes.items()}
        return statistic._replace(moments={**statistic.moments, **pulled})

    def for_each_node(self, statistic: ExpectedStatistic) -> ExpectedStatistic:
        """What each node is estimated from: what is expected, without what stationary first steps add."""
        return statistic if FIRST not in statistic.steps else stationary.without_pull(self._layout, statistic)

    def statistics(self, statistic: ExpectedStatistic) -> Statistics:
        return super().statistics(self.for_each_node(statistic))

    def parts(self, n: int) -> list[ParameterProblem]:
        if isinstance(self.first_slices, Stationary):
            raise FitError(
                f"Incremental(batches) cannot be used with {FIRST_STATIONARY}, whose M-step needs all first steps; leave it out"
            )
        return super().parts(n)

    @property
    def _layout(self) -> ChainLayout:
        return self.components.layout  # type: ignore[attr-defined, no-any-return]

    @cached_property
    def conventions(self) -> Conventions:
        """Hidden numbers of sequences are measured like the columns below them."""
        return NO_CONVENTIONS

    def base(self, name: str) -> str:
        return _base(name)

    @cached_property
    def hidden_names(self) -> frozenset[str]:
        """What no step shows, at all lags and in the first slices."""
        return frozenset(n for n in self.variables if _base(n) in self.hidden)

    @property
    def missing_share(self) -> float:
        cells = self.sequences.n_rows * len(self.sequences.columns)
        return float(sum(self.sequences.missing.values()) / max(1, cells))

    @property
    def amount(self) -> str:
        n = self.sequences.n_sequences
        return f"{self.weight:,.10g} steps of {n:,} sequence{'' if n == 1 else 's'}"

    def network(self, theta: Theta, statistic: ExpectedStatistic, info: str) -> Chain:  # type: ignore[override]
        cpds, seen = replace(self, output_units=self.units).cpds(theta), self.for_each_node(statistic)
        missing, held = self.sequences.missing, {*self.fixed, *self.entries}
        own = {}
        for n, node in self.nodes.items():
            complete = n not in held and all(missing.get(_base(v.name), 1) == 0 for v in node.members)
            own[n] = self._fit_node(node, cpds[n], seen, complete)
        fixed = dict.fromkeys(self.fixed, True) | {n: entries.names(self.nodes[n]) for n, entries in self.entries.items()}
        told: dict[str, Any] = {"prior": self.prior, "estimate": self.estimate, "fit_info": info, "incomplete": True}
        told |= {"hidden": self.hidden, "first_slices": self.first_slices, "fixed": fixed}
        return Chain.of(self.template, self.slice_variables, own, **told)


def chain_problem_of(template: Any, sequences: Any, **options: Any) -> ChainProblem:
    """The problem of fitting this template to these sequences, with the options of `chain_task_of`."""
    return ChainProblem.of_task(chain_task_of(template, sequences, **options))


def _base(name: str) -> str:
    """The variable of a column at a lag, or of a node of a first slice."""
    return INDEX.sub("", name)


def _place(name: str) -> tuple[str, int]:
    """Column and lag; nodes of first slices are of the present step."""
    base = _base(name)
    return (base, variable_and_lag(name)[1]) if name == base or name.startswith(f"{base}[-") else (base, 0)


def _units(task: ChainTask, seen: Mapping[str, Variable]) -> tuple[Spread, Units]:
    """The spread of each column of numbers under all of its names, and its units."""
    reals = tuple(n for n in task.sequences.columns if not isinstance(task.variables[n], Finite))
    whole = observed_cells(task.sequences.data.select(reals), reals, task.threads)
    at = [reals.index(_base(n)) for n, v in seen.items() if not isinstance(v, Finite)]
    spread = Spread(*(part[at] for part in whole))
    return spread, Units.of(spread, seen)


def _fully_shown(task: ChainTask, phases: tuple[Phase, ...], finite: list[str], numbers: list[str]) -> frozenset[str]:
    """The parameter nodes, tables and normal ones, whose families every step shows."""
    missing, found = task.sequences.missing, set[str]()
    gaps = {*finite, *numbers, *(n for n in task.variables if n in task.hidden or missing.get(n, 0))}
    for phase in phases:
        for name, node in phase.nodes.items():
            if (node.by_table or node.normal) and not any(variable_and_lag(v.name)[0] in gaps for v in node.members):
                found.add(phase.keys[name])
    return frozenset(found)
