"""EM of networks with numbers in them: normal nodes beside tables, and families that say something of completed rows.

    E-step   counts and moments of complete families + those of components, by moments or by completion of their rows
    M-step   the estimates of `suffice.learning.objective`, node by node

Inside, real columns are centred and scaled (`suffice.learning.units`): parameters are distributions of the scaled columns.
A prior takes its defaults from the observed cells of each real column; hidden variables have none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import Any, NamedTuple

import numpy as np

from suffice.engines.engine import Block as Batch
from suffice.engines.parallel import in_order, tree_sum
from suffice.errors import FitError, ModelError, listed, note
from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.family import Cpd
from suffice.families.priors import Prior
from suffice.graphs import Dag
from suffice.learning.completion import NEVER, Block, Sums, Working, blocks, completed, line_of
from suffice.learning.gathered import HELD, Collector, Gathered
from suffice.learning.hybrid_starts import Start
from suffice.learning.incomplete import Task
from suffice.learning.normal_parts import expected_moments
from suffice.learning.objective import (
    Collapsed,
    kept,
    log_prior_of_line,
    log_prior_of_rates,
    log_prior_of_table,
    moments_of,
    normal_of,
    table_of,
)
from suffice.learning.patterns import Array, Kind, Node, Patterns, nodes_of, refuse_unanswerable
from suffice.learning.problem import Expected
from suffice.learning.units import Units, available, seen_of
from suffice.learning.vectors import free_parts, like, with_parts
from suffice.learning.weighted import Groups, no_groups
from suffice.models.bayes_net import BayesNet
from suffice.models.sharing import Tie, linked
from suffice.statistics import Counts, Moments, Statistics
from suffice.statistics.configurations import sizes
from suffice.variables import Finite, Variable

__all__ = ["Collapsed", "HybridProblem"]

Parameters = dict[str, Cpd]
"""The distribution of each node; Gaussian ones are of scaled columns."""


WORTH_THREADS = 2**16
"""Fewer completions than this are done before a second thread has started."""


class Statistic(NamedTuple):
    """Expected statistics by node, in scaled columns, and the parameters under which they were expected."""

    parameters: Parameters
    sums: Sums


@dataclass(frozen=True, eq=False)
class HybridProblem:
    """Incomplete rows of a network with real nodes, reduced; see `suffice.learning.problem`."""

    task: Task
    nodes: Mapping[str, Node]
    units: Units
    prior: Prior | None
    imagined: Mapping[str, Any]
    patterns: Patterns
    gathered: Gathered
    held: bool
    weight: float
    first_part: bool = True
    """Whether what the units of the columns add to ln p is counted here: it must be once among the parts of a problem."""

    @classmethod
    def of(cls, task: Task) -> HybridProblem:
        """The rows of a task, passed over twice: once for the units of its columns, once to be reduced.

        >>> from suffice.learning.incomplete import task_of
        >>> problem = HybridProblem.of(task_of("x -> y", {"x": [0.0, 1.0, 2.0, 3.0], "y": [1.0, 3.0, 4.0, None]}))
        >>> theta = problem.first()
        >>> for _ in range(50):
        ...     theta = problem.maximised(problem.expected(theta).statistic)
        >>> problem.cpds(theta)["y"].coefficients.round(6)
        array([1.5])
        """
        nodes = nodes_of(task)
        refuse_unanswerable(task, nodes)
        seen = {n: v for n, v in task.variables.items() if n not in task.hidden}
        reals = tuple(n for n, v in seen.items() if not isinstance(v, Finite))
        spread, weight = available(task.rows, reals, task.threads), task.rows.weight
        units = Units.of(spread, seen).alike(linked(task.ties))
        prior = None if task.prior is None else task.prior.bind(task.variables, seen_of(spread, seen, weight))
        imagined = _imagined(nodes, prior, units)
        _refuse_constants(nodes, units, spread, imagined, task.ties)
        patterns = Patterns(nodes, task.rows.columns)
        held = 16.0 * task.rows.n_rows * (len(reals) + 2) <= HELD
        gathered = task.rows.fold(Collector(patterns, units, held).gathered, threads=task.threads)
        if gathered.empty:
            note(f"{gathered.empty:,} rows have no observed cell: they say nothing, and are kept")
        return cls(task, nodes, units, prior, imagined, patterns, gathered, held, weight)

    @property
    def dag(self) -> Dag:
        return self.task.dag

    @property
    def variables(self) -> Mapping[str, Variable]:
        return self.task.variables

    @property
    def hidden(self) -> tuple[str, ...]:
        return self.task.hidden

    @cached_property
    def scaled(self) -> Scaled:
        """The same problem, whose distributions and statistics are of scaled columns: for derivatives, which need all digits."""
        return Scaled(self)

    def imagined_of(self, name: str) -> Any:
        """What the prior imagines of a node."""
        node = self.nodes[name]
        return None if self.prior is None or node.iterative else self.prior.imagine(node.child, node.parents)

    def with_nodes(self, parameters: Parameters, other: Parameters, names: Iterable[str]) -> Parameters:
        """The parameters, those of some nodes taken from others."""
        return {**parameters, **{name: other[name] for name in names}}

    def silent(self, names: Iterable[str]) -> HybridProblem:
        """The same problem, whose prior says nothing about some nodes."""
        return replace(self, imagined={**self.imagined, **dict.fromkeys(names)})

    def pooled(self, statistic: Statistic, ties: Iterable[Tie]) -> Statistic:
        """The statistic in which each tied node has the counts or moments of its whole tie, whose columns have the same units."""
        tables, moments, old = dict(statistic.sums.tables), dict(statistic.sums.moments), dict(statistic.parameters)
        for tie in ties:
            # what has no weight keeps its parameters: they must be shared, too
            old |= {node: like(old[node], old[tie.nodes[0]]) for node in tie.nodes}
            tables |= _together(tables, tie, np.add)
            moments |= _together(moments, tie, Groups.plus)
        return Statistic(old, replace(statistic.sums, tables=tables, moments=moments))

    def shares(self, parameters: Parameters, ties: Iterable[Tie]) -> bool:
        """Whether tied nodes have the same parameters."""
        first = {node: tie.nodes[0] for tie in ties for node in tie.nodes}
        pairs = ((free_parts(parameters[a]), free_parts(parameters[b])) for a, b in first.items())
        return all(np.array_equal(x, y, equal_nan=True) for a, b in pairs for x, y in zip(a, b, strict=True))

    def first(self) -> Parameters:
        return self._start.first()

    def random(self, rng: np.random.Generator) -> Parameters:
        return self._start.random(rng)

    @cached_property
    def _start(self) -> Start:
        return Start(self.task, self.nodes, self.units, self.gathered)

    @cached_property
    def _blocks(self) -> list[Block]:
        return [b for key, rows in self.gathered.rows.items() for b in blocks(self.patterns.component(key), rows)]

    @cached_property
    def _n_completions(self) -> int:
        return sum(len(b.rows.weight) * b.component.n_states for b in self._blocks)

    def expected(self, parameters: Parameters) -> Expected:
        working = Working(parameters, self.units)
        total = self._complete(parameters)
        for key, cases in self.gathered.cases.items():
            log_likelihood, moments = expected_moments(self.patterns.component(key), cases, working.lines)
            total += Sums(log_likelihood, moments=moments)
        threads = self.task.threads if self._n_completions > WORTH_THREADS else 1
        tasks = (partial(completed, block, working) for block in self._blocks)
        total += tree_sum(in_order(tasks, threads), lambda a, b: a + b) or Sums()
        if not self.held:
            total += self.task.rows.fold(partial(self._again, working=working), threads=self.task.threads)
        if total.impossible < NEVER:
            raise FitError(
                f"row {total.impossible + 1:,} is impossible under the parameters: its probability is zero; "
                "give another start, or one without zeros"
            )
        return Expected(Statistic(parameters, total), total.log_likelihood)

    def parts(self, n: int) -> list[HybridProblem]:
        """The same rows in n parts, for incremental EM: every n-th row of each component; what has moments is in the first."""
        if not self.held or any(node.iterative for node in self.nodes.values()):
            why = "a family takes steps of its own" if self.held else "the rows do not fit into memory"
            raise FitError(f"batches= cannot be used here: {why}; leave it out")
        nothing = replace(self.gathered, tables={}, moments={}, cases={})
        result = []
        for i in range(n):
            some = {key: rows.take(slice(i, None, n)) for key, rows in self.gathered.rows.items()}
            gathered = replace(self.gathered if i == 0 else nothing, rows={k: r for k, r in some.items() if len(r.weight)})
            result.append(replace(self, gathered=gathered, first_part=i == 0))
        return result

    def joined(self, statistics: Sequence[Statistic]) -> Statistic:
        """The statistics of all parts together."""
        total = Sums()
        for statistic in statistics:
            total += statistic.sums
        return Statistic(statistics[-1].parameters, total)

    def free_energy(self, statistic: Statistic, parameters: Parameters) -> float:
        """What ln p of the completed rows is expected to be, up to what does not change."""
        total = 0.0
        for name, node in self.nodes.items():
            if node.kind is Kind.TABLE:
                total += _log_likelihood(statistic.sums.tables.get(name, np.zeros(node.n_cells)), parameters[name])
            elif name in statistic.sums.moments:
                groups = statistic.sums.moments[name]
                seen = moments_of(node, groups) if node.kind is Kind.NORMAL else self._named(node, statistic.sums)
                total += parameters[name].log_likelihood(seen)
        return total

    def _again(self, batch: Batch, *, working: Working) -> Sums:
        """What the rows of a batch add that are read in every iteration."""
        collector = Collector(self.patterns, self.units, hold=False)
        parts = (completed(b, working) for component, rows in collector.needed(batch) for b in blocks(component, rows))
        return tree_sum(parts, lambda a, b: a + b) or Sums()

    def _complete(self, parameters: Parameters) -> Sums:
        """The statistics of complete families, and their ln p."""
        names = [n for n, node in self.nodes.items() if node.kind is Kind.NORMAL]
        total = Sums(-self.units.of_cells(names) if self.first_part else 0.0)
        for name, N in self.gathered.tables.items():
            if self.nodes[name].kind is Kind.TABLE:
                total.tables[name] = N
                total.log_likelihood += _log_likelihood(N, parameters[name])
        for name, groups in self.gathered.moments.items():
            if self.nodes[name].kind is Kind.NORMAL:
                total.moments[name] = groups
                total.log_likelihood += parameters[name].log_likelihood(moments_of(self.nodes[name], groups))
        if total.log_likelihood == -np.inf:
            total.impossible = self._first_impossible(parameters)
        return total

    def _first_impossible(self, parameters: Parameters) -> int:
        """The first row whose observed states some table rules out by themselves; the rows are read once more for it."""
        tables = [n for n in self.gathered.tables if self.nodes[n].kind is Kind.TABLE]
        for batch in self.task.rows.batches():
            missing = self.patterns.missing(batch)
            worst = NEVER
            for name in tables:
                members = [self.patterns.columns.index(v.name) for v in self.nodes[name].members]
                some = np.flatnonzero(~missing[members].any(axis=0))
                if batch.weight is not None:
                    some = some[batch.weight[some] > 0]
                columns = {v.name: batch.columns[v.name][some] for v in self.nodes[name].members}
                lost = some[parameters[name].log_prob(columns) == -np.inf]
                worst = min(worst, batch.start + int(lost.min(initial=NEVER - batch.start)))
            if worst < NEVER:
                return worst
        return NEVER

    def rounding(self, parameters: Parameters) -> float:
        """By how much ln p may be off since a residual variance is a difference of numbers near 1: N δv/(2v), δv some 1e-15.

        So it is where parents all but determine a child, as when tied columns lie a million deviations apart.
        """
        variances = (cpd.variance for cpd in parameters.values() if isinstance(cpd, ConditionalGaussian))
        least = (float(np.min(v, where=v > 0, initial=np.inf)) for v in variances)
        return 1e-15 * self.weight * sum(1.0 / v for v in least)

    def maximised(self, statistic: Statistic) -> Parameters:
        return {name: self._estimate(node, statistic) for name, node in self.nodes.items()}

    def _estimate(self, node: Node, statistic: Statistic) -> Cpd:
        old, sums, imagined, how = statistic.parameters[node.name], statistic.sums, self.imagined[node.name], self.task.estimate
        if node.iterative:
            return node.family.advance(old, sums.steps[node.name]) if node.name in sums.steps else old
        if node.kind is Kind.TABLE:
            return table_of(node, sums.tables.get(node.name, np.zeros(node.n_cells)), imagined, how)
        if node.kind is Kind.NORMAL:
            assert isinstance(old, ConditionalGaussian)
            return normal_of(node, sums.moments.get(node.name), old, imagined, how, self.units.variance[node.name])
        new = node.family.estimate(node.child, node.parents, self._named(node, sums), imagined, how)
        cpd: Cpd = kept(new, old, sums.moments.get(node.name))
        return cpd

    def log_prior(self, parameters: Parameters) -> float:
        return float(sum(self._log_prior(node, parameters[name]) for name, node in self.nodes.items()))

    def _log_prior(self, node: Node, cpd: Cpd) -> float:
        imagined, how = self.imagined[node.name], self.task.estimate
        if hasattr(node.family, "log_prior"):
            return float(node.family.log_prior(cpd))
        if imagined is None:
            return 0.0
        if hasattr(cpd, "rates"):
            return log_prior_of_rates(cpd.rates, imagined, how)
        if isinstance(cpd, Table):
            return log_prior_of_table(cpd, imagined, how)
        assert isinstance(cpd, ConditionalGaussian)
        return log_prior_of_line(line_of(cpd), imagined, how, float(np.log(self.units.scale[node.name])))

    def cpds(self, parameters: Parameters) -> dict[str, Cpd]:
        normal = {n: c for n, c in parameters.items() if self.nodes[n].kind is Kind.NORMAL}
        return parameters | {n: self.units.outward_cpd(c) for n, c in normal.items() if isinstance(c, ConditionalGaussian)}

    def parameters(self, cpds: Mapping[str, Cpd]) -> Parameters:
        result: Parameters = {}
        for name, node in self.nodes.items():
            cpd = _arranged(node, cpds.get(name))
            normal = isinstance(cpd, ConditionalGaussian) and node.kind is Kind.NORMAL
            result[name] = self._start.filled(node, self.units.inward_cpd(cpd) if normal else cpd)  # type: ignore[arg-type]
        return result

    def vector(self, parameters: Parameters) -> Array:
        """All parameters as one vector, in scaled columns: what acceleration extrapolates."""
        return np.concatenate([part.reshape(-1) for cpd in parameters.values() for part in free_parts(cpd)])

    def from_vector(self, vector: Array) -> Parameters:
        """Back from it; the rows of tables are divided by their sums."""
        result: Parameters = {}
        for name, cpd in self._shapes.items():
            shapes = [part.shape for part in free_parts(cpd)]
            cuts = np.cumsum([math.prod(shape) for shape in shapes])
            *parts, vector = np.split(vector, cuts)
            result[name] = with_parts(cpd, [p.reshape(shape) for p, shape in zip(parts, shapes, strict=True)])
        return result

    @cached_property
    def _shapes(self) -> Parameters:
        return self.first()

    def statistics(self, statistic: Statistic) -> Statistics:
        """Expected counts and moments by name; of regressions the counts of the child."""
        plain = [self._named(node, statistic.sums) for node in self.nodes.values() if not node.iterative]
        steps = {self.nodes[n].child: s for n, s in statistic.sums.steps.items()}
        return Statistics([*plain, *(Counts((v,), s.counts) for v, s in steps.items() if isinstance(v, Finite))], self.weight)

    def _named(self, node: Node, sums: Sums) -> Counts | Moments:
        if not node.reals:
            counts = sums.tables.get(node.name, np.zeros(node.n_cells))
            return Counts(node.finite, counts.reshape(sizes(node.finite)))
        groups = sums.moments.get(node.name) or no_groups(len(node.reals) + len(node.counted))
        counted = tuple(r for r in node.reals if self.units.counts(r))
        return self.units.outward_moments(node.finite, node.reals, groups, counted)

    def network(self, parameters: Parameters, statistic: Statistic, info: str) -> BayesNet:
        cpds = {n: self._fitted(self.nodes[n], cpd, statistic.sums) for n, cpd in self.cpds(parameters).items()}
        fitted = {
            "prior": self.prior,
            "estimate": self.task.estimate,
            "fit_info": info,
            "incomplete": True,
            "hidden": self.hidden,
            "ties": self.task.ties,
        }
        return BayesNet.of(self.dag, self.variables, cpds, **fitted)

    def _fitted(self, node: Node, cpd: Cpd, sums: Sums) -> Cpd:
        """The distribution with what was expected of it; as in `fit`, a configuration that no row can have has no parameters."""
        if isinstance(cpd, Table) and node.kind is Kind.TABLE:
            return replace(cpd, seen=self._named(node, sums))  # type: ignore[arg-type]
        if not isinstance(cpd, ConditionalGaussian) or node.kind is not Kind.NORMAL:
            # expected statistics make no posterior: its intervals would be too narrow
            return replace(cpd, imagined=None) if getattr(cpd, "imagined", None) is not None else cpd  # type: ignore[type-var]
        seen = self._named(node, sums)
        assert isinstance(seen, Moments)
        lost = seen.at(np.arange(cpd.variance.size)).count.reshape(cpd.variance.shape) <= 0
        if self.imagined[node.name] is not None or not lost.any():
            return replace(cpd, seen=seen)
        a, v = (np.where(lost, np.nan, part) for part in (cpd.intercept, cpd.variance))
        return replace(cpd, intercept=a, coefficients=np.where(lost[..., None], np.nan, cpd.coefficients), variance=v, seen=seen)


class Scaled:
    """A problem with numbers as one of its scaled columns; its objective is that of the columns as they are."""

    def __init__(self, problem: HybridProblem) -> None:
        self._problem = problem
        self._plain = replace(problem, units=problem.units.plain)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._problem, name)

    def cpds(self, parameters: Parameters) -> dict[str, Cpd]:
        return dict(parameters)

    def parameters(self, cpds: Mapping[str, Cpd]) -> Parameters:
        return {name: cpds[name] for name in self._problem.nodes}

    def statistics(self, statistic: Statistic) -> Statistics:
        return self._plain.statistics(statistic)

    def imagined_of(self, name: str) -> Any:
        return self._problem.imagined[name]

    def outward_map(self, cpd: Cpd) -> Array | None:
        return self._problem.units.outward_map(cpd) if isinstance(cpd, ConditionalGaussian) else None


def _together(parts: Mapping[str, Any], tie: Tie, plus: Any) -> dict[str, Any]:
    """For each node of a tie what all of them have, added."""
    own = [parts[node] for node in tie.nodes if node in parts]
    return dict.fromkeys(tie.nodes, reduce(plus, own)) if own else {}


def _refuse_constants(
    nodes: Mapping[str, Node], units: Units, spread: Any, imagined: Mapping[str, Any], ties: Iterable[Tie]
) -> None:
    """A column of equal numbers has no density, unless a prior gives it one, or a column that shares it."""
    tied = {node for tie in ties if any(units.variance.get(n, 0.0) > 0 for n in tie.nodes) for node in tie.nodes}
    for i, name in enumerate(units.centre):
        if name in tied:
            continue
        square = float(spread.scatter[i, 0, 0]) / max(float(spread.weight[i]), 1e-300)
        same = square <= (1e-14 * float(spread.mean[i, 0])) ** 2
        if same and nodes[name].kind is Kind.NORMAL and imagined[name] is None:
            raise FitError(
                f"all values of {name!r} are the same, and a constant has no density: leave the column out, or use a prior "
                "such as NormalInverseGamma()"
            )


def _imagined(nodes: Mapping[str, Node], prior: Prior | None, units: Units) -> dict[str, Any]:
    """What the prior imagines of each node, of scaled columns; None where it says nothing, which is noted."""
    said: dict[str, Any] = {}
    for name, node in nodes.items():
        answer = None if prior is None or node.iterative else prior.imagine(node.child, node.parents)
        said[name] = units.inward_moments(answer) if node.kind is Kind.NORMAL and isinstance(answer, Moments) else answer
    unspoken = [n for n, answer in said.items() if answer is None]
    if prior is not None and unspoken:
        note(f"the prior says nothing about {listed(unspoken)}: fitted by maximum likelihood")
    return said


def _log_likelihood(N: Array, cpd: Any) -> float:
    """Σ N ln θ."""
    seen = N > 0
    with np.errstate(divide="ignore"):
        return float(N[seen] @ np.log(cpd.probs.reshape(-1)[seen])) if seen.any() else 0.0


def _arranged(node: Node, cpd: Cpd | None) -> Cpd:
    """A distribution with the axes of its parents in the order of the node; one that is not of this node is refused."""
    wanted = tuple(p.name for p in node.parents)
    if cpd is None or set(cpd.parents) != set(wanted):
        raise ModelError(f"the start has no distribution of {node.name!r} given {listed(wanted) or 'nothing'}")
    theirs = {v.name: v for v in (*cpd.parent_variables, cpd.child)}
    for v in node.members:
        other = theirs[v.name]
        if isinstance(v, Finite) and v.states != getattr(other, "states", ()):
            states = listed(getattr(other, "states", ()))
            raise ModelError(f"{v.name!r} has the states {states} in the start and {listed(v.states)} in the data")
    kinds = {Kind.TABLE: Table, Kind.NORMAL: ConditionalGaussian}
    if node.kind in kinds and not isinstance(cpd, kinds[node.kind]):
        raise ModelError(f"the start has a {type(cpd).__name__} of {node.name!r}, which needs a {kinds[node.kind].__name__}")
    if isinstance(cpd, Table) and node.kind is Kind.TABLE:
        axes = [cpd.parents.index(p) for p in wanted]
        return Table(cpd.child, node.parents, np.transpose(cpd.probs, [*axes, len(axes)]))  # type: ignore[arg-type]
    if isinstance(cpd, ConditionalGaussian):
        before = [p.name for p in cpd.finite_parents]
        axes = [before.index(v.name) for v in node.parents if isinstance(v, Finite)]
        columns = [cpd.real_parents.index(v.name) for v in node.parents if not isinstance(v, Finite)]
        b = np.transpose(cpd.coefficients, [*axes, len(axes)])[..., columns]
        intercept, variance = (np.transpose(part, axes) for part in (cpd.intercept, cpd.variance))
        return ConditionalGaussian(node.child, node.parents, intercept, b, variance)
    return cpd
