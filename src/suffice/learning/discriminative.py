"""Bayesian networks for one purpose: maximise Σ log p(y | rest) over the tables that y is in; the others stay as they are.

With log θ = W − log Σ exp W in each row of a table, and N the seen less the expected counts of its cells,

    p(y | rest) = ∏ θ(y, …) / Σ_y ∏ θ(y, …),    gradient by W = N − θ Σ_row N

Of naive Bayes this is exactly logistic regression (Ng & Jordan 2002, NIPS 14, p. 841), and its optimum is the only one; of other
graphs the optimum is the nearest to the maximum likelihood estimates, where the climb begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, nearest
from suffice.families.categorical import Table
from suffice.learning.owlqn import minimised
from suffice.models.bayes_net import BayesNet
from suffice.objectives import L2, Conditional, PenaltySum
from suffice.statistics import Statistics
from suffice.variables import Finite

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LEAST = 1e-10
"""The smallest probability that the climb begins with: from 0 there is no way up."""

MAX_ITER = 5000


@dataclass(frozen=True, eq=False)
class ConditionalProblem:
    """A network fitted by maximum likelihood, and the rows that its tables are to be fitted to instead."""

    network: BayesNet
    data: Any
    penalties: PenaltySum

    def by_conditional(self, objective: Conditional) -> BayesNet:
        bn, y = self.network, objective.target
        if y not in bn.dag.nodes:
            raise FitError(f"the objective is about {y!r}, which is no node of the graph{nearest(y, bn.dag.nodes)}")
        names = [y, *sorted(n for n in bn.dag.children(y))]
        tables = Tables.of(bn, y, names, blanket_rows(bn, y, names, self.data))
        c2 = _strength(self.penalties)
        found = minimised(lambda w: tables.loss(w, c2), tables.start, tol=1e-9 * tables.weight, max_iter=MAX_ITER)
        loss = tables.loss(found.x, 0.0)[0]
        how = f"Σ log p({y} | rest) {-loss:,.4f}, {found.iterations:,} iterations"
        only = (
            "" if not any(len(bn[n].parents) > 1 for n in names) else "; a local optimum, from the maximum likelihood estimates"
        )
        price = f" with {self.penalties!r}" if self.penalties else ""
        info = f"fitted from {tables.weight:,.0f} rows by conditional likelihood (L-BFGS){price}: {how}{only}"
        return BayesNet.of(bn.dag, bn.variables, {**{n: bn[n] for n in bn}, **tables.cpds(found.x)}, fit_info=info)

    def by_perceptron(self, objective: Any) -> BayesNet:
        raise _no_such(objective)

    def by_margin(self, objective: Any) -> BayesNet:
        raise _no_such(objective)


def _no_such(objective: Any) -> FitError:
    return FitError(
        f"{objective!r} is for a LinearChain; the nearest for a Bayesian network is Conditional({objective.target!r}): "
        "it tells one finite node from the others"
    )


def fit_conditional(network: BayesNet, data: Any, objective: Any, penalties: PenaltySum) -> BayesNet:
    """The same network, fitted to tell one of its nodes from the others.

    >>> from suffice import fit
    >>> rows = {"y": ["a", "a", "b", "b", "b"], "x": ["u", "v", "v", "v", "u"]}
    >>> fit("y -> x", rows, objective=Conditional("y")).fit_info
    'fitted from 5 rows by conditional likelihood (L-BFGS): Σ log p(y | rest) -3.2958, 0 iterations'
    """
    if isinstance(data, Statistics):
        raise FitError("conditional likelihood is of rows: statistics of families do not tell how columns go together")
    bn: BayesNet = objective.fit(ConditionalProblem(network, data, penalties))
    return bn


def _strength(penalties: PenaltySum) -> float:
    if any(not isinstance(p, L2) or not isinstance(p.strength, float) for p in penalties.parts):
        raise FitError(f"conditional likelihood of a network takes the penalty L2(c2), one number, not {penalties!r}")
    return float(sum(p.strength for p in penalties.parts))


def blanket_rows(bn: BayesNet, y: str, names: Sequence[str], data: Any) -> Any:
    """The distinct rows of the columns that y goes with, and their weights."""
    columns = dict.fromkeys(p for n in names for p in (*bn.dag.parents(n), n))
    for name in columns:
        if not isinstance(bn.variables[name], Finite):
            raise FitError(f"{name!r} holds numbers, and conditional likelihood is of finite columns: cut it into Bins")
    rows = data if isinstance(data, Data) else scan(data)
    rows = rows.take(columns).with_variables({n: bn.variables[n] for n in columns})
    if gaps := [n for n, m in rows.missing.items() if m]:
        raise DataError(f"the column {gaps[0]!r} has missing cells, and conditional likelihood needs complete rows")
    return rows.distinct()


@dataclass(frozen=True, eq=False)
class Tables:
    """The tables of y and its children, one after the other in one vector of logits. cells[f][r, k] is the cell of table f that
    row r is in if y has state k; `true` is the state that it has."""

    nodes: Mapping[str, Table]
    cells: tuple[Ints, ...]
    true: Ints
    weights: Array

    @classmethod
    def of(cls, bn: BayesNet, y: str, names: Sequence[str], rows: Any) -> Tables:
        nodes: dict[str, Any] = {n: bn[n] for n in names}
        variable: Any = bn.variables[y]
        cells, n_rows = [], len(rows.weights)
        for table in nodes.values():
            index = np.zeros((n_rows, variable.n_states), np.int64)
            for v in (*table.parent_variables, table.child):
                own = np.arange(v.n_states)[None] if v.name == y else rows.columns[v.name].astype(np.int64)[:, None]
                index = index * v.n_states + own
            cells.append(index)
        return cls(nodes, tuple(cells), rows.columns[y].astype(np.int64), np.asarray(rows.weights, np.float64))

    @property
    def weight(self) -> float:
        return float(self.weights.sum())

    @property
    def shapes(self) -> list[tuple[int, int]]:
        return [(-1, t.child.n_states) for t in self.nodes.values()]

    @property
    def start(self) -> Array:
        """The logits of the tables as they are."""
        parts = []
        for table in self.nodes.values():
            probs = np.nan_to_num(table.probs, nan=1.0 / table.child.n_states)
            parts.append(np.log(np.maximum(probs, LEAST)).reshape(-1))
        return np.concatenate(parts)

    def parts(self, w: Array) -> list[Array]:
        """The vector as one array for each table: rows × states of the child."""
        ends = np.cumsum([t.probs.size for t in self.nodes.values()])[:-1]
        return [x.reshape(shape) for x, shape in zip(np.split(w, ends), self.shapes, strict=True)]

    def loss(self, w: Array, c2: float) -> tuple[float, Array]:
        """−Σ log p(y | rest) + c2 Σ w², and its gradient."""
        logs = [x - _log_sum(x) for x in self.parts(w)]
        joint = np.sum([own.reshape(-1)[at] for own, at in zip(logs, self.cells, strict=True)], axis=0)
        log_p = joint - _log_sum(joint)
        each = np.arange(len(self.true))
        surplus = np.exp(log_p) * self.weights[:, None]  # expected − seen
        surplus[each, self.true] -= self.weights
        slopes = []
        for own, at in zip(logs, self.cells, strict=True):
            N = np.bincount(at.reshape(-1), surplus.reshape(-1), own.size).reshape(own.shape)
            slopes.append((N - np.exp(own) * N.sum(axis=1, keepdims=True)).reshape(-1))
        value = -float(self.weights @ log_p[each, self.true]) + c2 * float(w @ w)
        return value, np.concatenate(slopes) + 2.0 * c2 * w

    def cpds(self, w: Array) -> dict[str, Table]:
        """The tables with these logits."""
        parts = zip(self.nodes.items(), self.parts(w), strict=True)
        return {n: Table(t.child, t.parent_variables, np.exp(x - _log_sum(x)).reshape(t.probs.shape)) for (n, t), x in parts}


def _log_sum(x: Array) -> Array:
    top = x.max(axis=1, keepdims=True)
    return np.asarray(top + np.log(np.exp(x - top).sum(axis=1, keepdims=True)))
