"""Newton steps on the likelihood of a finite undirected model, from the curvature over all joint states x.

    f(w) = ln Σ_x e^{b(x)·w} − seen·w + Σ c2 w²,    f'' = Σ_x p(x) b(x) b(x)ᵀ − E[b] E[b]ᵀ + 2 c2

For where L-BFGS crawls: data on the boundary of what is possible under a small penalty. Weights then go far out, and curvatures
fall by many powers of ten on the way, which a few past steps cannot tell. (Not with a price of |w|: the curvature is nearly
singular between the weights that a price keeps apart, and steps within an orthant jam.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.learning.owlqn import ROUNDING, Minimum
from suffice.statistics.configurations import n_configurations

if TYPE_CHECKING:
    from suffice.learning.undirected.problem import UndirectedProblem

Array = npt.NDArray[np.float64]

MAX_STATES, MAX_WEIGHTS, MAX_NUMBERS = 2**14, 2000, 2**22
"""Joint states, weights, and numbers in states × weights, up to which curvatures are reckoned."""
STEPS = 200


class Curved(NamedTuple):
    """f, its gradient and its second derivatives: b(x) of all states, what is seen, and c2."""

    states: Any
    seen: Array
    l2: Array

    @staticmethod
    def of(problem: UndirectedProblem, mean: Array, total: float) -> Curved | None:
        """None where not all weights have a c2 alone, or there are too many states or weights."""
        if problem.l1.any() or not problem.l2.all():
            return None
        terms, n = problem.terms, n_configurations(problem.variables.values())
        if n > MAX_STATES or terms.n_weights > MAX_WEIGHTS or n * terms.n_weights > MAX_NUMBERS:
            return None
        design = terms.design(terms.names, np.arange(n, dtype=np.int64))
        return Curved(design, terms.by_weight(mean), problem.l2 / total)

    def value(self, w: Array) -> float:
        """f."""
        return self._log_z(w)[0] - float(self.seen @ w) + float(self.l2 @ (w * w))

    def derivatives(self, w: Array) -> tuple[Array, Array]:
        """f' and f''."""
        _, p = self._log_z(w)
        mean = self.states.T @ p
        products = (self.states.T @ (self.states * p[:, None])).toarray()
        return mean - self.seen + 2.0 * self.l2 * w, products - np.outer(mean, mean) + np.diag(2.0 * self.l2)

    def _log_z(self, w: Array) -> tuple[float, Array]:
        logs = self.states @ w
        top = float(logs.max())
        p = np.exp(logs - top)
        return top + float(np.log(p.sum())), p / p.sum()


def newton(f: Curved, start: Array, tol: float) -> Minimum:
    """The minimum of f, where the steepest slope is at most `tol`, from a start that need not be near.

    >>> from scipy.sparse import csr_array
    >>> two = Curved(csr_array([[0.0], [1.0]]), np.array([0.75]), np.zeros(1))
    >>> newton(two, np.zeros(1), 1e-12).x.round(8)  # ln 3
    array([1.09861229])
    """
    w, value, steepest = np.array(start), f.value(start), np.inf
    for step in range(STEPS):
        slope, curvature = f.derivatives(w)
        steepest = float(np.abs(slope).max(initial=0.0))
        direction = -np.linalg.solve(curvature, slope).astype(np.float64)
        moved = None if steepest <= tol else _move(f, w, value, direction, float(slope @ direction))
        if moved is None:
            return Minimum(w, value, steepest, step, step + 1, steepest <= tol)
        w, value = moved
    return Minimum(w, value, steepest, STEPS, STEPS, False)


def _move(f: Curved, w: Array, value: float, direction: Array, promised: float) -> tuple[Array, float] | None:
    """The point after a step, halved until it gains enough, and its value; None where nothing is gained."""
    length = 1.0
    while length > 1e-10:
        after = f.value(w + length * direction)
        if after <= value + 1e-4 * length * promised + ROUNDING * max(abs(value), 1.0):
            return w + length * direction, after
        length /= 2.0
    return None
