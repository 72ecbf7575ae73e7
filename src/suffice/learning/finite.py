"""EM of finite networks (stand-in by enumeration; kernels to come)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from suffice.families import family_of
from suffice.families.categorical import Table
from suffice.families.family import Cpd, Mode
from suffice.graphs import Dag
from suffice.learning.incomplete import Task
from suffice.learning.problem import Expected
from suffice.models.bayes_net import BayesNet
from suffice.statistics import Counts, Statistics
from suffice.variables import Finite

Tables = dict[str, Any]


@dataclass(eq=False)
class FiniteProblem:
    """Parameters: a table per node; statistic: counts per node of the same shapes."""

    task: Task
    rows: Any
    weights: Any
    imagined: Tables

    @classmethod
    def of(cls, task: Task) -> FiniteProblem:
        names = list(task.variables)
        n = task.rows.n_rows
        codes = np.full((n, len(names)), -1)
        weights = np.ones(n)
        for batch in task.rows.batches():
            for name, column in batch.columns.items():
                part = column.astype(np.int64)
                part[column == np.iinfo(column.dtype).max] = -1
                codes[batch.start : batch.start + len(part), names.index(name)] = part
            if batch.weight is not None:
                weights[batch.start : batch.start + batch.n_rows] = batch.weight
        imagined: Tables = {}
        for name in names:
            parents = [task.variables[p] for p in task.dag.parents(name)]
            said = None if task.prior is None else task.prior.imagine(task.variables[name], parents)
            shape = [v.n_states for v in (*parents, task.variables[name])]  # type: ignore[union-attr]
            imagined[name] = np.zeros(shape) if said is None else said.dense()  # type: ignore[union-attr]
        return cls(task, codes, weights, imagined)

    @property
    def dag(self) -> Dag:
        return self.task.dag

    @property
    def variables(self) -> Any:
        return self.task.variables

    @property
    def hidden(self) -> tuple[str, ...]:
        return self.task.hidden

    @property
    def weight(self) -> float:
        return float(self.weights.sum())

    def first(self) -> Tables:
        return {n: a + 1.0 / (a + 1.0).sum(axis=-1, keepdims=True) for n, a in self.imagined.items()} and {
            n: np.full(a.shape, 1.0 / a.shape[-1]) for n, a in self.imagined.items()
        }

    def random(self, rng: np.random.Generator) -> Tables:
        return {n: rng.dirichlet(np.ones(a.shape[-1]), a.shape[:-1]) for n, a in self.imagined.items()}

    def expected(self, parameters: Tables) -> Expected:
        names = list(self.variables)
        sizes = [self.variables[n].n_states for n in names]
        scopes = {n: [names.index(p) for p in self.dag.parents(n)] + [names.index(n)] for n in names}
        N = {n: np.zeros_like(a) for n, a in self.imagined.items()}
        total = 0.0
        for row, weight in zip(self.rows, self.weights, strict=True):
            states = list(product(*(range(s) if c < 0 else [c] for s, c in zip(sizes, row, strict=True))))
            p = np.array([np.prod([parameters[n][tuple(x[i] for i in scopes[n])] for n in names]) for x in states])
            total += weight * np.log(p.sum())
            for x, q in zip(states, p / p.sum(), strict=True):
                for n in names:
                    N[n][tuple(x[i] for i in scopes[n])] += weight * q
        return Expected(N, float(total))

    def maximised(self, statistic: Tables) -> Tables:
        less = 1.0 if isinstance(self.task.estimate, Mode) and self.task.prior is not None else 0.0
        result = {}
        for n, counts in statistic.items():
            w = counts + self.imagined[n] - less
            s = w.sum(axis=-1, keepdims=True)
            result[n] = np.divide(w, s, out=np.full_like(w, 1.0 / w.shape[-1]), where=s > 0)
        return result

    def log_prior(self, parameters: Tables) -> float:
        less = 1.0 if isinstance(self.task.estimate, Mode) else 0.0
        if self.task.prior is None:
            return 0.0
        return float(sum(((a - less) * np.log(parameters[n])).sum() for n, a in self.imagined.items()))

    def cpds(self, parameters: Tables) -> dict[str, Cpd]:
        return {n: Table(self._child(n), self._parents(n), p) for n, p in parameters.items()}

    def parameters(self, cpds: Mapping[str, Cpd]) -> Tables:
        return {n: np.array(cpds[n].probs) for n in self.variables}  # type: ignore[attr-defined]

    def statistics(self, statistic: Tables) -> Statistics:
        return Statistics([Counts((*self._parents(n), self._child(n)), c) for n, c in statistic.items()], self.weight)

    def network(self, parameters: Tables, statistic: Tables, info: str) -> BayesNet:
        named = self.statistics(statistic)
        cpds: dict[str, Cpd] = {}
        for n, p in parameters.items():
            request = family_of(self._child(n), self._parents(n)).needs(self._child(n), self._parents(n))
            cpds[n] = Table(self._child(n), self._parents(n), p, named.answer(request))  # type: ignore[arg-type]
        return BayesNet.of(self.dag, self.variables, cpds, prior=self.task.prior, estimate=self.task.estimate, fit_info=info)

    def _child(self, name: str) -> Finite:
        v = self.variables[name]
        assert isinstance(v, Finite)
        return v

    def _parents(self, name: str) -> tuple[Finite, ...]:
        return tuple(self._child(p) for p in self.dag.parents(name))
