"""A network's parameters as one unconstrained vector η, and derivatives by η from expected statistics alone.

The coordinates of one node are its chart (`suffice.families.charts`). Nodes that share their parameters have one chart, and what
is expected of them adds.

Fisher's identity: the gradient of ln p(observed | θ) is the expected gradient of the complete rows' log-likelihood. For a table

    ∂ ln L / ∂θ[u, x] = Σ_m P(x, u | D_m) / θ[u, x] = N[u, x] / θ[u, x]

(Russell, Binder, Koller & Kanazawa 1995, IJCAI, pp. 1146–1152; Mitchell 1997, Machine Learning, §6.11.5), which chained
through the softmax is N[u, x] − N[u] θ[u, x]. A prior adds what it imagines to N, or to the moments of a Gaussian.

Hidden numbers with parents have mean 0 and variance 1 by convention: nothing is known along G, the directions in which one moves
and its children make up for it. The convention, with derivatives K, takes them away: with C any inverse of the information but
along G,

    Cov = P C Pᵀ,   P = I − G (K G)⁻¹ K
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from suffice.errors import FitError
from suffice.families.charts import Array
from suffice.families.protocol.family import Cpd
from suffice.families.regression_charts import chart_of
from suffice.incomplete.components import Theta
from suffice.learning.ascent.identified import means_and_covariance, numbers_near
from suffice.learning.incomplete.problem import ParameterProblem


@dataclass(frozen=True, eq=False)
class Atlas:
    """The parameters of a problem as one vector, around some parameters and what is expected there: a chart for each node.

    >>> from suffice.learning.incomplete.problem import problem_of
    >>> problem = problem_of("x", {"x": ["a", "b", "b", "b", None]})
    >>> begin = problem.first()
    >>> atlas = Atlas.around(problem, begin, problem.expect(begin).statistic)
    >>> sorted(atlas.cpds(np.log([3.0]))["x"].probs.round(6).tolist())
    [0.25, 0.75]
    """

    problem: ParameterProblem
    charts: Mapping[str, Any]
    copies: Mapping[str, tuple[str, Cpd]]
    """Nodes that share the parameters of another: its name, and their own distribution around there."""

    @classmethod
    def around(cls, problem: ParameterProblem, parameters: Any, statistic: Any, boundary: float = 0.0, fixed: Any = ()) -> Atlas:
        """Coordinates near these parameters. Cells of at most `boundary`, and nodes in `fixed`, stay what they are."""
        cpds, seen = problem.cpds(parameters), problem.plain(statistic)
        charts: dict[str, Any] = {}
        copies = {n: (tie.nodes[0], cpds[n]) for tie in problem.ties for n in tie.nodes[1:]}
        for name, cpd in cpds.items():
            if name not in fixed and name not in copies:
                answer = problem.of_node(name, seen)
                charts[name] = chart_of(cpd).of(cpd, answer, problem.known_of(name), problem.estimate, boundary)
        return cls(problem, charts, copies)

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return sum(chart.size for chart in self.charts.values())

    @cached_property
    def places(self) -> dict[str, slice]:
        """Where the coordinates of each node are in the vector; those that share them are not listed."""
        ends = np.cumsum([0, *(chart.size for chart in self.charts.values())])
        return {name: slice(int(a), int(b)) for name, a, b in zip(self.charts, ends[:-1], ends[1:], strict=True)}

    @cached_property
    def unit(self) -> Array:
        """For each coordinate a step that is neither small nor large."""
        return self._join({name: chart.unit for name, chart in self.charts.items()})

    def vector(self, parameters: Any) -> Array:
        cpds = self.problem.cpds(parameters)
        return self._join({name: chart.vector(cpds[name]) for name, chart in self.charts.items()})

    def cpds(self, vector: Array) -> dict[str, Cpd]:
        return self.with_copies({name: self.charts[name].at(vector[place]) for name, place in self.places.items()})

    def with_copies(self, cpds: Mapping[str, Cpd]) -> dict[str, Cpd]:
        """Distributions of nodes, and those of the nodes that share their parameters."""
        return {**cpds, **{n: cpd.like(cpds[of]) for n, (of, cpd) in self.copies.items() if of in cpds}}

    def share(self, by_node: Mapping[str, Any]) -> dict[str, Any]:
        """What is said of nodes, said of those that share their parameters, too."""
        return {**by_node, **{n: by_node[of] for n, (of, _) in self.copies.items() if of in by_node}}

    def scores(self, cpds: Mapping[str, Cpd], statistic: Any, names: Any = None) -> Array:
        """The gradient of the complete rows' objective at `cpds`, given their statistic; of all nodes, or of `names`. With the
        statistic that is expected under them it is that of ln L and of what the prior adds.

        >>> from suffice.families.categorical import Table
        >>> from suffice.learning.incomplete.problem import problem_of
        >>> problem = problem_of("x", {"x": ["a", "b", "b", "b", None]})
        >>> cpds = {"x": Table(problem.variables["x"], (), [0.5, 0.5])}
        >>> half = problem.parameters(cpds)
        >>> statistic = problem.expect(half).statistic  # 1.5 and 3.5 rows; the reference state is the first
        >>> Atlas.around(problem, half, statistic).scores(cpds, statistic)
        array([1.])
        """
        parts = self.weigh(statistic, names)
        return self._join({name: self.charts[name].score(cpds[name], s) for name, s in parts.items()})

    def curvature(self, parameters: Any, statistic: Any) -> Array:
        """The diagonal of the information that complete rows would have."""
        cpds, parts = self.problem.cpds(parameters), self.weigh(statistic)
        return self._join({name: self.charts[name].curvature(cpds[name], s) for name, s in parts.items()})

    def weigh(self, statistic: Any, names: Any = None) -> dict[str, Any]:
        """What is expected, and imagined, of each node."""
        seen, chosen = self.problem.gradient_statistic(statistic), self.charts if names is None else names
        return {name: self.charts[name].weigh(self.problem.of_node(name, seen)) for name in chosen}

    def _join(self, parts: Mapping[str, Array]) -> Array:
        return np.concatenate([np.zeros(0), *parts.values()])


STEP = 1e-5
"""Of the unit of a coordinate, or of a hidden number: what is differentiated is smooth, and known to all digits."""


def refuse_classes_above(atlas: Atlas) -> None:
    """Refuse hidden numbers with parents where states bear on numbers near them: their variances are those of mixtures."""
    conventions = atlas.problem.conventions
    if conventions.with_parents and any(node.finite for node in numbers_near(atlas.problem)):
        raise FitError(
            f"the hidden number {conventions.with_parents[0]!r} has parents, and finite variables bear on numbers near it: the "
            "observed information of such a graph is not known yet; resample rows for errors"
        )


def projection(atlas: Atlas, theta: Theta) -> Array:
    """P."""
    names = atlas.problem.conventions.with_parents
    G, K = _free(atlas, theta, names), _constraints(atlas, theta, names)
    return np.asarray(np.eye(atlas.size) - G @ np.linalg.solve(K @ G, K))


def _free(atlas: Atlas, theta: Theta, names: tuple[str, ...]) -> Array:
    """∂ parameters / ∂ (place, logarithm of the scale) of each hidden number."""
    shift, columns = atlas.problem.conventions.shift, []
    for name in names:
        for ahead, back in (((STEP, 1.0), (-STEP, 1.0)), ((0.0, np.exp(STEP)), (0.0, np.exp(-STEP)))):
            there, here = (atlas.vector(shift(theta, name, *move)) for move in (ahead, back))
            columns.append((there - here) / (2.0 * STEP))
    return np.array(columns).T


def _constraints(atlas: Atlas, theta: Theta, names: tuple[str, ...]) -> Array:
    """∂ (mean, variance) of each hidden number / ∂ parameters."""
    problem, origin, cpds = atlas.problem, atlas.vector(theta), atlas.problem.cpds(theta)

    def fixed_moments(vector: Array) -> Array:
        moved = problem.parameters({**cpds, **atlas.cpds(vector)})
        order, mean, covariance = means_and_covariance(problem, moved)
        at = [order.index(n) for n in names]
        return np.stack([mean[at], np.diag(covariance)[at]], axis=1).reshape(-1)

    steps = STEP * atlas.unit
    return np.array([(fixed_moments(origin + h) - fixed_moments(origin - h)) / (2.0 * h.sum()) for h in np.diag(steps)]).T
