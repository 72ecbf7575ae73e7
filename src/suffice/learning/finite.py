"""EM of finite networks: all tables as one array, the rows as a reduction.

E-step   N = counts of complete families + expected counts of components
M-step   θ = (N + α − m) / Σ (N + α − m),  α imagined counts, m = 1 for modes and else 0
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from suffice.engines.engine import ROWS
from suffice.engines.progress import watched
from suffice.errors import FitError, ModelError, listed, note
from suffice.families.categorical import Table
from suffice.families.family import Cpd, Mode
from suffice.families.priors import Prior
from suffice.graphs import Dag
from suffice.learning.buckets import Buckets, Impossible
from suffice.learning.incomplete import Task
from suffice.learning.layout import Array, Layout
from suffice.learning.problem import Expected
from suffice.learning.reduction import Reduction, reduction_of
from suffice.models.bayes_net import BayesNet
from suffice.models.sharing import Tie
from suffice.statistics import Counts, Statistics
from suffice.statistics.configurations import checked_cells, described
from suffice.variables import Finite


@dataclass(frozen=True, eq=False)
class FiniteProblem:
    """Parameters: all tables in one flat array, in the order of the nodes; the statistic: counts alike."""

    task: Task
    reduction: Reduction
    prior: Prior | None
    imagined: Array
    less: Array

    @classmethod
    def of(cls, task: Task) -> FiniteProblem:
        layout = layout_of(task)
        names = list(task.variables)
        batches = watched(task.rows.batches(), "reducing rows", -(-task.rows.n_rows // ROWS))
        return cls.from_reduction(task, reduction_of(layout, names, batches))

    @classmethod
    def from_reduction(cls, task: Task, reduction: Reduction) -> FiniteProblem:
        """The problem of rows that were reduced before, in parts perhaps: reductions add."""
        names, layout = list(task.variables), reduction.layout
        seen = Statistics(
            [Counts((v,), c) for v, c in zip(_finite(task), np.split(reduction.states, layout.state_start[1:-1]), strict=True)],
            reduction.weight,
        )
        prior = None if task.prior is None else task.prior.bind(task.variables, seen)
        imagined, less, unspoken = np.zeros(layout.n_cells), np.zeros(layout.n_cells), []
        for i, name in enumerate(names if prior is not None else ()):
            child, parents = task.variables[name], [task.variables[p] for p in task.dag.parents(name)]
            said = prior.imagine(child, parents) if prior is not None else None
            if said is None:
                unspoken.append(name)
                continue
            cells = slice(layout.table_start[i], layout.table_start[i + 1])
            assert isinstance(said, Counts)
            imagined[cells] = said.dense().reshape(-1)
            less[cells] = 1.0 if isinstance(task.estimate, Mode) else 0.0
        if unspoken:
            note(f"the prior says nothing about {listed(unspoken)}: fitted by maximum likelihood")
        if reduction.n_empty:
            note(f"{reduction.n_empty:,} rows have no observed cell: they say nothing, and are kept")
        return cls(task, reduction, prior, imagined, less)

    @property
    def dag(self) -> Dag:
        return self.task.dag

    @cached_property
    def variables(self) -> Mapping[str, Finite]:
        return {v.name: v for v in _finite(self.task)}

    @property
    def hidden(self) -> tuple[str, ...]:
        return self.task.hidden

    @property
    def weight(self) -> float:
        return self.reduction.weight

    @property
    def layout(self) -> Layout:
        return self.reduction.layout

    @cached_property
    def buckets(self) -> Buckets:
        return Buckets(self.reduction, self.task.threads)

    def parts(self, n: int) -> list[FiniteProblem]:
        """The same components in n parts, for incremental EM; complete families are in the first."""
        r = self.reduction
        n = max(1, min(n, r.n_records))
        result = []
        for i in range(n):
            chosen = np.arange(r.n_records) % n == i
            at = r.record_at[:-1][chosen]
            width = np.diff(r.record_at)[chosen]
            starts = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
            places = np.repeat(at - starts[:-1], width) + np.arange(starts[-1])
            part = replace(
                r,
                counts=r.counts if i == 0 else np.zeros_like(r.counts),
                record_shape=r.record_shape[chosen],
                record_at=starts,
                records=r.records[places],
                multiplicity=r.multiplicity[chosen],
            )
            result.append(replace(self, reduction=part))
        return result

    def imagined_of(self, name: str) -> Counts | None:
        """What the prior imagines of a node."""
        child, parents = self.variables[name], [self.variables[p] for p in self.task.dag.parents(name)]
        said = None if self.prior is None else self.prior.imagine(child, parents)
        assert said is None or isinstance(said, Counts)
        return said

    def with_nodes(self, parameters: Array, other: Array, names: Iterable[str]) -> Array:
        """The parameters, those of some nodes taken from others."""
        result, number = parameters.copy(), list(self.variables)
        for name in names:
            i = number.index(name)
            cells = slice(self.layout.table_start[i], self.layout.table_start[i + 1])
            result[cells] = other[cells]
        return result

    def silent(self, names: Iterable[str]) -> FiniteProblem:
        """The same problem, whose prior says nothing about some nodes."""
        imagined, less = self.imagined.copy(), self.less.copy()
        for name in names:
            imagined[self._cells(name)] = less[self._cells(name)] = 0.0
        return replace(self, imagined=imagined, less=less)

    def pooled(self, statistic: Array, ties: Iterable[Tie]) -> Array:
        """The statistic in which each tied node has the counts of its whole tie."""
        result = statistic.copy()
        for tie in ties:
            total = sum(statistic[self._cells(node)] for node in tie.nodes)
            for node in tie.nodes:
                result[self._cells(node)] = total
        return result

    def shares(self, parameters: Array, ties: Iterable[Tie]) -> bool:
        """Whether tied nodes have the same parameters."""
        first = {node: tie.nodes[0] for tie in ties for node in tie.nodes}
        return all(np.array_equal(parameters[self._cells(a)], parameters[self._cells(b)]) for a, b in first.items())

    def _cells(self, name: str) -> slice:
        i = list(self.variables).index(name)
        return slice(int(self.layout.table_start[i]), int(self.layout.table_start[i + 1]))

    def joined(self, statistics: Sequence[Array]) -> Array:
        """The statistics of all parts together."""
        return np.asarray(np.sum(statistics, axis=0))

    def first(self) -> Array:
        return self._shared(self.reduction.counts + self.imagined + 1.0)

    def random(self, rng: np.random.Generator) -> Array:
        """Tables with hidden variables are drawn around the child's own distribution, the others around what is known of them."""
        weights = self.reduction.counts + self.imagined + 1.0
        names = list(self.task.variables)
        marginals = np.split(self.reduction.states, self.layout.state_start[1:-1])
        for i, table in enumerate(self.layout.cut(weights)):
            family = (names[i], *self.task.dag.parents(names[i]))
            if set(family) & set(self.task.hidden):
                own = marginals[i] + 1.0 if names[i] not in self.task.hidden else np.ones_like(marginals[i])
                table[:] = 0.5 + len(own) * own / own.sum()
        drawn = rng.standard_gamma(weights)
        return self._shared(np.maximum(drawn, 1e-12))

    def expected(self, parameters: Array) -> Expected:
        counts = self.reduction.counts
        try:
            more, log_likelihood = self.buckets.expected(parameters)
        except Impossible as impossible:
            raise self._impossible(impossible.record) from None
        known = counts > 0
        lost = known & (parameters <= 0.0)
        if lost.any():
            raise FitError(f"rows with {self._cell(int(np.argmax(lost)))} are impossible under the parameters{START}")
        return Expected(counts + more, log_likelihood + float(counts[known] @ np.log(parameters[known])))

    def maximised(self, statistic: Array) -> Array:
        weights = statistic + self.imagined - self.less
        if self.less.any() and weights.min() < 0.0:
            cell = int(np.argmin(weights))
            raise FitError(
                f"the posterior has no mode: count and prior at {self._cell(cell)} make {weights[cell] + 1.0:g}, below 1; "
                "use estimate=Mean() or a stronger prior"
            )
        return self._shared(weights)

    def log_prior(self, parameters: Array) -> float:
        more = self.imagined - self.less
        said = more != 0.0
        if not said.any():
            return 0.0
        with np.errstate(divide="ignore"):
            return float(more[said] @ np.log(parameters[said]))

    def free_energy(self, statistic: Array, parameters: Array) -> float:
        """Σ N ln θ."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.where(statistic > 0, statistic * np.log(parameters), 0.0).sum())

    def vector(self, parameters: Array) -> Array:
        """Coordinates to extrapolate in: roots, since logarithms of vanishing probabilities run away."""
        return np.sqrt(parameters)

    def from_vector(self, vector: Array) -> Array:
        """Back from roots, which may have been led below 0, and rows divided by their sums."""
        return self._shared(vector**2)

    def cpds(self, parameters: Array) -> dict[str, Cpd]:
        return self._tables(parameters, None)

    def parameters(self, cpds: Mapping[str, Cpd]) -> Array:
        parts = []
        for name, v in self.variables.items():
            cpd, parents = cpds.get(name), self.task.dag.parents(name)
            if not isinstance(cpd, Table) or set(cpd.parents) != set(parents):
                raise ModelError(f"the start has no table of {name!r} given {listed(parents) or 'nothing'}")
            for mine, theirs in zip((v, *(self.variables[p] for p in parents)), (cpd.child, *_by(cpd, parents)), strict=True):
                if mine.states != theirs.states:
                    raise ModelError(
                        f"{mine.name!r} has the states {listed(theirs.states)} in the start and {listed(mine.states)} in the data"
                    )
            axes = [cpd.parents.index(p) for p in parents]
            parts.append(np.transpose(cpd.probs, [*axes, len(axes)]).reshape(-1))
        return np.concatenate(parts)

    def statistics(self, statistic: Array) -> Statistics:
        return Statistics(map(Counts, self._families, self.layout.cut(statistic)), self.weight)

    def network(self, parameters: Array, statistic: Array, info: str) -> BayesNet:
        cpds = self._tables(parameters, statistic)
        return BayesNet.of(
            self.dag,
            self.variables,
            cpds,
            prior=self.prior,
            estimate=self.task.estimate,
            fit_info=info,
            incomplete=True,
            hidden=self.hidden,
            ties=self.task.ties,
        )

    def _tables(self, parameters: Array, statistic: Array | None) -> dict[str, Cpd]:
        tables = self.layout.cut(parameters)
        counts = [None] * len(tables) if statistic is None else self.layout.cut(statistic)
        result: dict[str, Cpd] = {}
        for (name, child), table, seen in zip(self.variables.items(), tables, counts, strict=True):
            parents = tuple(self.variables[p] for p in self.task.dag.parents(name))
            result[name] = Table(child, parents, table, None if seen is None else Counts((*parents, child), seen))
        return result

    def _shared(self, weights: Array) -> Array:
        """Weights divided by the sums of their rows; a row without weight is uniform."""
        sums = self.layout.row_sums(weights)
        uniform = 1.0 / np.repeat(self.layout.row_length, self.layout.row_length)
        return np.divide(weights, sums, out=uniform, where=sums > 0)

    def _cell(self, cell: int) -> str:
        i = int(np.searchsorted(self.layout.table_start, cell, side="right")) - 1
        return described(cell - int(self.layout.table_start[i]), self._families[i])

    @cached_property
    def _families(self) -> list[tuple[Finite, ...]]:
        """The variables of each table, the child last."""
        return [(*(self.variables[p] for p in self.task.dag.parents(n)), v) for n, v in self.variables.items()]

    def _impossible(self, record: int) -> FitError:
        """What an impossible record shows: the observed states around what is missing."""
        r = self.reduction
        variables, families = r.shapes[int(r.record_shape[record])]
        names = list(self.task.variables)
        missing = {names[v] for v in variables.tolist()}
        shown: dict[str, str] = {}
        for f, place in zip(families.tolist(), r.records[r.record_at[record] : r.record_at[record + 1]].tolist(), strict=True):
            scope = self._families[f]
            digits = np.unravel_index(place - int(r.layout.table_start[f]), [v.n_states for v in scope])
            shown |= {v.name: v.states[int(d)] for v, d in zip(scope, digits, strict=True) if v.name not in missing}
        given = ", ".join(f"{n}={s!r}" for n, s in shown.items()) or "any cells"
        gone = listed(sorted(missing))
        return FitError(f"rows with {given}, in which {gone} is missing, are impossible under the parameters{START}")


START = "; give another start, or one without zeros"


def layout_of(task: Task) -> Layout:
    """The tables of a task's network."""
    finite = _finite(task)
    names = [v.name for v in finite]
    number = {n: i for i, n in enumerate(names)}
    scopes = [[*(number[p] for p in task.dag.parents(n)), number[n]] for n in names]
    for scope in scopes:
        checked_cells([finite[i] for i in scope], f"the table of {names[scope[-1]]!r}")
    return Layout.of([v.n_states for v in finite], scopes)


def _finite(task: Task) -> list[Finite]:
    return [v for v in task.variables.values() if isinstance(v, Finite)]


def _by(cpd: Table, names: tuple[str, ...]) -> list[Finite]:
    return [cpd.parent_variables[cpd.parents.index(n)] for n in names]
