"""Bayesian networks for one purpose: tell the node y from all others, by the tables that y is in; the other tables stay.

State k of y has in a row the score s_k = Σ_f w_f(k, …), a weight for each cell of the tables of y and of its children.
`Conditional` maximises Σ log p(y | rest) = Σ s_y − ln Σ_k exp s_k, `Margin` minimises Σ max_k (cost [k ≠ y] + s_k − s_y),
either with c2 Σ w².

Where all parents of each child of y are joined, as in naive Bayes and TAN, any weights are those of a network: what a table
lacks to be normalised is put into that of the last parent, which has all the others (Roos, Wettig, Grünwald, Myllymäki & Tirri
2005, Machine Learning 59, p. 267). So the objective is convex and its optimum is the only one; naive Bayes is logistic
regression, or a support vector machine. In other graphs s is a sum of log θ = w − ln Σ exp w, normalised in each row of a
table, and the optimum is a local one, from the maximum likelihood estimates. Functions of the other columns alone change no s_k
− s_y: they stay near those estimates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from suffice.basis.arrays import Array
from suffice.errors import FitError, listing, nearest, note
from suffice.errors.remedies import weight_penalty
from suffice.families.categorical import Table
from suffice.learning.conditional.target_rows import TargetRows, distinct_rows, least_hinge
from suffice.learning.owlqn import minimise
from suffice.models.networks import BayesNet
from suffice.numerics.inference.finite.logs import log_sum
from suffice.objectives.principles import L2, Conditional, Margin, PenaltySum

LEAST = 1e-10
"""The smallest probability that the climb begins with: from 0 there is no way up."""

MAX_ITER = 5000

TEMPERATURES = (1.0, 0.3, 0.1, 0.03, 0.01)
"""Where the hinge loss is not convex it is softened, and less so from one climb to the next."""
SVM = L2(0.5)
"""The penalty of margins, where none is given: C = 1 of a support vector machine."""


@dataclass(frozen=True, eq=False)
class TargetProblem:
    """A network fitted by maximum likelihood, and the rows that its tables are to be fitted to instead."""

    network: BayesNet
    data: Any
    penalties: PenaltySum

    def by_conditional(self, objective: Conditional) -> BayesNet:
        tables, c2 = self._tables(objective.target), self._strength()
        found = minimise(lambda w: tables.loss(w, c2), tables.start, tol=1e-9 * tables.rows.weight, max_iter=MAX_ITER)
        if not found.converged:
            note(
                f"Σ log p({objective.target} | rest) still rises after {found.iterations:,} iterations: {weight_penalty(2, 0.1)} "
                f"bounds it"
            )
        value = f"Σ log p({objective.target} | rest) {-tables.loss(found.x, 0.0)[0]:,.4f}, {found.iterations:,} iterations"
        price = f" with {self.penalties!r}" if self.penalties else ""
        return self._network(tables, found.x, f"conditional likelihood (L-BFGS){price}: {value}")

    def by_margin(self, objective: Margin) -> BayesNet:
        """Without a penalty it is that of a support vector machine with C = 1."""
        own = self if self.penalties else TargetProblem(self.network, self.data, PenaltySum((SVM,)))
        tables, c2, cost = self._tables(objective.target), own._strength(), objective.cost.cost
        if tables.free:
            found = least_hinge(tables.rows, len(tables.start), cost, c2)
            w, how, steps = found.w, f"interior point, gap {found.gap:.1g}", found.steps
        else:
            w, steps = tables.start, 0
            for temperature in TEMPERATURES:
                soft = minimise(lambda w, t=temperature: tables.loss(w, c2, cost, t), w, tol=1e-7 * tables.rows.weight)  # type: ignore[misc]
                w, steps = soft.x, steps + soft.iterations
            how = "softened, L-BFGS"
        loss = tables.rows.hinge(tables.logs(w), cost)
        value = f"hinge loss {loss:,.4f}, objective {loss + c2 * float(w @ w):,.4f}, {steps:,} iterations"
        said = f"margins ({how}) with {own.penalties!r}: {value}; its probabilities are scores that are not calibrated"
        return self._network(tables, w, said)

    def _tables(self, y: str) -> TargetTables:
        bn = self.network
        if y not in bn.dag.nodes:
            raise FitError(f"the objective is about {y!r}, which is no node of the graph{nearest(y, bn.dag.nodes)}")
        names = [y, *sorted(bn.dag.children(y))]
        rows = blanket_rows(bn, y, names, self.data)
        if odd := [n for n in names if bn[n].is_regression]:
            raise FitError(f"{listing(odd)} is no table but a regression, and the objective is about the tables that {y!r} is in")
        if tied := [n for nodes in bn.shared for n in nodes if n in names]:
            raise FitError(
                f"{listing(tied)} share their parameters with others, and the tables that {y!r} is in are fitted one by one"
            )
        return TargetTables.of(bn, y, names, rows)

    def _strength(self) -> float:
        if any(not isinstance(p, L2) or not isinstance(p.strength, float) for p in self.penalties.parts):
            raise FitError(
                f"a network that tells one node from the others takes the penalty L2(c2), one number, not {self.penalties!r}"
            )
        return float(sum(p.strength for p in self.penalties.parts))

    def _network(self, tables: TargetTables, w: Array, by: str) -> BayesNet:
        bn = self.network
        info = f"fitted from {tables.rows.weight:,.10g} rows by {by}{tables.optimum}"
        return BayesNet.of(bn.dag, bn.variables, {**{n: bn[n] for n in bn}, **tables.cpds(w)}, fit_info=info)


def fit_to_target(network: BayesNet, data: Any, objective: Any, penalties: PenaltySum) -> BayesNet:
    """The same network, fitted to tell one of its nodes from the others."""
    if getattr(objective, "label_weights", ()):
        raise FitError("label_weights are for a LinearChain; of a network, give rows weights: scan(data, weights=...)")
    bn: BayesNet = objective.fit(TargetProblem(network, data, penalties))
    return bn


def blanket_rows(bn: BayesNet, y: str, names: Sequence[str], data: Any) -> tuple[dict[str, Any], Array]:
    """The distinct rows of the columns that y goes with, and their weights."""
    return distinct_rows(bn.variables, dict.fromkeys((y, *(p for n in names for p in (*bn.dag.parents(n), n)))), data)


@dataclass(frozen=True, eq=False)
class TargetTables:
    """The tables of y and its children, one after the other in one vector of weights; `free` where any weights are a
    network's."""

    target: str
    nodes: Mapping[str, Table]
    rows: TargetRows
    free: bool

    @classmethod
    def of(cls, bn: BayesNet, y: str, names: Sequence[str], rows: tuple[dict[str, Any], Array]) -> TargetTables:
        place = {n: i for i, n in enumerate(bn.dag.topological_order)}
        nodes: dict[str, Any] = {n: bn[n] for n in sorted(names, key=place.__getitem__)}
        scopes = [(*t.parent_variables, t.child) for t in nodes.values()]
        starts = np.cumsum([0, *(t.probs.size for t in nodes.values())])[:-1].tolist()
        joined = {frozenset(e) for e in bn.dag.edges}
        free = all(frozenset(pair) in joined for n in names if n != y for pair in combinations(bn.dag.parents(n), 2))
        return cls(y, nodes, TargetRows.of(y, scopes, starts, rows), free)

    @property
    def start(self) -> Array:
        """The logs of the tables as they are."""
        probs = [np.nan_to_num(table.probs, nan=1.0 / table.child.n_states).reshape(-1) for table in self.nodes.values()]
        return np.log(np.maximum(np.concatenate(probs), LEAST))

    def parts(self, w: Array) -> dict[str, Array]:
        """The vector as one array for each table, in its shape."""
        ends = np.cumsum([t.probs.size for t in self.nodes.values()])[:-1]
        return {n: x.reshape(t.probs.shape) for (n, t), x in zip(self.nodes.items(), np.split(w, ends), strict=True)}

    def logs(self, w: Array) -> Array:
        """What is added up to scores: the weights, or log θ."""
        return w if self.free else np.concatenate([(x - log_sum(x, -1)[..., None]).reshape(-1) for x in self.parts(w).values()])

    def loss(self, w: Array, c2: float, cost: float = 0.0, temperature: float = 1.0) -> tuple[float, Array]:
        """The loss of the rows (`TargetRows`) + c2 Σ w², and its gradient: by W with log θ = W − ln Σ exp W, N − θ Σ_row N."""
        logs = self.logs(w)
        value, slope = self.rows.loss(logs, cost, temperature)
        if not self.free:
            pairs = zip(self.parts(slope).values(), self.parts(logs).values(), strict=True)
            slope = np.concatenate([(N - np.exp(own) * N.sum(axis=-1, keepdims=True)).reshape(-1) for N, own in pairs])
        return value + c2 * float(w @ w), slope + 2.0 * c2 * w

    @property
    def optimum(self) -> str:
        """What is said of graphs in which there might be several optima."""
        if all(n == self.target or len(t.parent_variables) < 2 for n, t in self.nodes.items()):
            return ""
        which = "and of this graph the only one" if self.free else "from the maximum likelihood estimates"
        return f"; a local optimum, {which}"

    def cpds(self, w: Array) -> dict[str, Table]:
        """The tables with these weights, normalised."""
        parts = {n: x.copy() for n, x in self.parts(w).items()}
        if self.free:
            start, order = self.parts(self.start), list(self.nodes)
            for n, table in self.nodes.items():  # what the tables say of the other columns, the states of y together, stays
                axis = [*table.parents, n].index(self.target)
                parts[n] += np.expand_dims(log_sum(start[n], axis) - log_sum(parts[n], axis), axis)
            # what the rows of a table add up to goes to the table of its last parent: children first, y's own is then left over
            for n in (n for n in reversed(order) if n != self.target):
                parents = self.nodes[n].parents
                last = max((p for p in parents if p in self.nodes), key=order.index)  # others are parents of y, too
                axes = [*self.nodes[last].parents, last]
                sums = log_sum(parts[n], -1)
                parts[n] -= sums[..., None]
                rest = sums.transpose([parents.index(a) for a in axes if a in parents])
                parts[last] += rest.reshape([k if a in parents else 1 for a, k in zip(axes, parts[last].shape, strict=True)])
        tables = {n: np.exp(x - log_sum(x, -1)[..., None]) for n, x in parts.items()}
        return {n: Table(t.child, t.parent_variables, tables[n]) for n, t in self.nodes.items()}
