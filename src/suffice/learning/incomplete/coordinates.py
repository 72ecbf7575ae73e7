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

After a fit it is said what should be known of hidden numbers: variances that fell to zero, and what the data does not identify.
Given the states, observed columns are normal. Their means and covariances are functions of the parameters, and so are all that
data can tell: parameters along which none of these changes are not identified (Fisher 1966). With x = a + B x + e, A = (I − B)⁻¹:

    ∂ mean/∂a_i   A_i            ∂ Cov/∂v_i    A_i A_iᵀ
    ∂ mean/∂B_ij  A_i mean_j     ∂ Cov/∂B_ij   A_i Cov_j + (A_i Cov_j)ᵀ
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from suffice.basis.arrays import Array
from suffice.basis.variables import Finite
from suffice.errors import FitError, listing
from suffice.errors.remedies import NORMAL_PRIOR
from suffice.families.protocol.family import Cpd
from suffice.families.regression_charts import chart_of
from suffice.incomplete.components import NodeFamily, Theta
from suffice.incomplete.numbers.patterns import digits_of
from suffice.learning.incomplete.problem import ParameterProblem
from suffice.models.parts.parameter_covariance import n_angles
from suffice.statistics.counts import n_configurations, sizes


@dataclass(frozen=True, eq=False)
class Atlas:
    """The parameters of a problem as one vector, around some parameters and what is expected there: a chart for each node."""

    problem: ParameterProblem
    charts: Mapping[str, Any]
    copies: Mapping[str, tuple[str, Cpd]]
    """Nodes that share the parameters of another: its name, and their own distribution around there."""

    @classmethod
    def around(cls, problem: ParameterProblem, parameters: Any, statistic: Any, boundary: float = 0.0, fixed: Any = ()) -> Atlas:
        """Coordinates near these parameters. Cells of at most `boundary`, and nodes in `fixed`, stay what they are."""
        cpds, seen = problem.cpds(parameters), problem.for_each_node(statistic)
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
        statistic that is expected under them it is that of ln L and of what the prior adds."""
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


def projection(atlas: Atlas, theta: Theta) -> Array:
    """P."""
    problem, shift = atlas.problem, atlas.problem.conventions.shift
    names, columns = problem.conventions.with_parents, []
    for name in names:  # ∂ parameters / ∂ (place, logarithm of the scale) of each hidden number
        for ahead, back in (((STEP, 1.0), (-STEP, 1.0)), ((0.0, np.exp(STEP)), (0.0, np.exp(-STEP)))):
            there, here = (atlas.vector(shift(theta, name, *move)) for move in (ahead, back))
            columns.append((there - here) / (2.0 * STEP))
    origin, cpds, nodes = atlas.vector(theta), problem.cpds(theta), numbers_near(problem)
    place = {node.name: i for i, node in enumerate(nodes)}
    at = [place[n] for n in names]

    def fixed_moments(vector: Array) -> Array:
        """The mean and variance of each hidden number: no states bear on them."""
        moved = problem.parameters({**cpds, **atlas.cpds(vector)})
        _, mean, covariance = _joint(moved, nodes, dict.fromkeys(place, 0), place)
        return np.stack([mean[at], np.diag(covariance)[at]], axis=1).reshape(-1)

    steps = np.diag(STEP * atlas.unit)
    K = np.array([(fixed_moments(origin + h) - fixed_moments(origin - h)) / (2.0 * h.sum()) for h in steps]).T
    G = np.array(columns).T
    return np.asarray(np.eye(atlas.size) - G @ np.linalg.solve(K @ G, K))


MOST = 2**21
"""Derivatives that are looked at; of larger graphs only the numbers of parameters and moments are compared."""

SMALL = 1e-2
"""A variance below this share of the column's is looked at twice."""

ROUNDING = 1e-8
"""Directions along which moments change by no more, as a share of the largest change, change nothing."""


def doubts(problem: ParameterProblem, theta: Theta, statistic: Any) -> Iterator[str]:
    """What a user should know of hidden numbers, in sentences."""
    conventions = problem.conventions
    if not conventions.names:
        return
    if small := nodes_without_noise(problem, theta, statistic):
        yield (
            f"the variance of {listing(small)} falls to zero, at least to a millionth of the column's: hidden numbers all but "
            f"determine it (a Heywood case); use fewer of them, or a prior such as {NORMAL_PRIOR}"
        )
    if set(conventions.loose) != set(conventions.names) or problem.ties:
        return  # fixed and shared distributions, and priors, identify what the data does not
    free, unknown = _directions(problem, theta)
    if free:
        where = f" of {listing(unknown)}" if unknown else ""
        yield (
            f"the data does not identify {free} direction{'s' if free > 1 else ''} of the parameters{where}: other values "
            "give the observed columns the same distribution; a hidden number needs three children of its own, or links to others"
        )


def nodes_without_noise(problem: ParameterProblem, theta: Theta, statistic: Any) -> list[str]:
    """The nodes with a variance that is the least allowed, or is small and still falls with each step of EM."""
    found: list[str] = []
    try:
        ahead = problem.maximise(statistic)
    except FitError:  # what would collapse with the next step is not what is asked here
        return found
    for node in (node for node in problem.others if problem.conventions.floor(node)):
        least, whole = problem.conventions.floor(node), problem.units.variance[node.name]
        v, then = theta.lines[node.name].variance / whole, ahead.lines[node.name].variance / whole
        if bool(((v <= least * (1.0 + 1e-9)) | ((v < SMALL) & (then < v * (1.0 - 1e-5)))).any()):
            found.append(node.name)
    return found


def _directions(problem: ParameterProblem, theta: Theta) -> tuple[int, list[str]]:
    """How many directions of the parameters change no moment, besides rotations, and the nodes whose parameters they change."""
    nodes = numbers_near(problem)
    states = tuple({v.name: v for node in nodes for v in node.finite}.values())
    n_seen = sum(node.name not in problem.hidden for node in nodes)
    n_moments = n_configurations(states) * n_seen * (n_seen + 3) // 2
    n_free = sum(len(_free(problem, node)) * node.n_cells for node in nodes)
    names = problem.conventions.names
    classes = [n for n in names if problem.nodes[n].finite]  # of these all numbers are looked at, and two of each are convention
    turned = n_angles(problem.dag, problem.variables, names) + 2 * len(classes)
    if n_moments * n_free > MOST:
        return max(0, n_free - turned - n_moments), []
    J, owner = _derivatives(problem, theta, nodes, states)
    J = J / np.maximum(np.linalg.norm(J, axis=0), 1e-300)
    _, changes, axes = np.linalg.svd(np.linalg.qr(J, mode="r"), full_matrices=True)
    rank = int((changes > ROUNDING * changes.max(initial=0.0)).sum())
    moved = np.abs(axes[rank:]).max(axis=0, initial=0.0) > 1e-3
    return n_free - rank - turned, [] if turned else sorted({n for n, m in zip(owner, moved, strict=True) if m})


def numbers_near(problem: ParameterProblem) -> list[NodeFamily]:
    """The normal nodes that hidden numbers speak of, and numbers beside them."""
    near = set(problem.conventions.names)
    normal = [node for node in problem.nodes.values() if node.normal]
    while more := {r for node in normal if not near.isdisjoint(node.reals) for r in node.reals} - near:
        near |= more
    order = problem.dag.topological_order
    return sorted((node for node in normal if node.name in near), key=lambda node: order.index(node.name))


def _free(problem: ParameterProblem, node: NodeFamily) -> list[int]:
    """The parameters of a node that are free: coefficients by number, then the intercept and the variance."""
    k, known = len(node.reals) - 1, node.name in problem.conventions.names and not node.finite
    return list(range(k)) if known else list(range(k + 2))


def _derivatives(
    problem: ParameterProblem, theta: Theta, nodes: list[NodeFamily], states: tuple[Finite, ...]
) -> tuple[Array, list[str]]:
    """∂ moments of each joint state / ∂ parameters, and the node of each parameter."""
    place = {node.name: i for i, node in enumerate(nodes)}
    seen = [i for i, node in enumerate(nodes) if node.name not in problem.hidden]
    pairs = np.tril_indices(len(seen))
    every = ((node.name, key, j) for node in nodes for key in range(node.n_cells) for j in _free(problem, node))
    columns = {own: c for c, own in enumerate(every)}
    blocks = []
    for digits in digits_of(sizes(states)).T:
        at = dict(zip((v.name for v in states), digits.tolist(), strict=True))
        keys = {node.name: sum(node.strides[v.name] * at[v.name] for v in node.finite) for node in nodes}
        A, mean, cov = _joint(theta, nodes, keys, place)
        block = np.zeros((len(seen) + len(pairs[0]), len(columns)))
        for node in nodes:
            i, k = place[node.name], len(node.reals) - 1
            for j in _free(problem, node):
                parent = place[node.reals[j]] if j < k else -1
                by_mean = A[:, i] * (mean[parent] if j < k else 1.0 if j == k else 0.0)
                half = np.outer(A[:, i], cov[parent] if j < k else A[:, i] * (0.5 if j > k else 0.0))
                by_cov = (half + half.T)[np.ix_(seen, seen)][pairs]
                block[:, columns[node.name, keys[node.name], j]] = np.concatenate([by_mean[seen], by_cov])
        blocks.append(block)
    return np.concatenate(blocks), [name for name, _, _ in columns]


def _joint(theta: Theta, nodes: list[NodeFamily], keys: dict[str, int], place: dict[str, int]) -> tuple[Array, Array, Array]:
    """(I − B)⁻¹, the means and the covariance of all nodes at a configuration."""
    n = len(nodes)
    B, a, v = np.zeros((n, n)), np.zeros(n), np.zeros(n)
    for i, node in enumerate(nodes):
        line, key = theta.lines[node.name], keys[node.name]
        a[i], v[i] = line.intercept[key], line.variance[key]
        B[i, [place[r] for r in node.reals[:-1]]] = line.coefficients[key]
    A = np.asarray(np.linalg.inv(np.eye(n) - B), np.float64)
    return A, A @ a, (A * v) @ A.T
