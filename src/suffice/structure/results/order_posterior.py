"""The posterior of edges that `order_mcmc` found, with all that tells whether to believe it.

Do several chains agree, and how many independent draws are their draws worth? After Gelman et al., Bayesian Data Analysis (3rd
ed. 2013), §11.4–11.5: each chain is cut into halves, which are compared as chains of their own, so that one that still drifts
disagrees with itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.arrays import Array
from suffice.basis.output.display import OneTable
from suffice.basis.pictures import Focus, Picture, Pictured, PicturedTable, PictureEdge, PictureNode
from suffice.errors import GraphError, nearest
from suffice.families.protocol.family import frame
from suffice.graphs import Dag
from suffice.structure.results.found_graph import N_SHOWN

AGREED = 1.1
"""Chains agree when the R-hat of their scores is at most this,"""

APART = 0.1
"""and no edge's posterior differs by more than this between them."""

LIKELY = 0.5
"""Pairs of variables with an edge of at least this posterior are joined in pictures."""


class PosteriorEdge(NamedTuple):
    """P(parent → child | data), and its Monte Carlo standard error."""

    parent: str
    child: str
    posterior: float
    error: float


@dataclass(frozen=True, eq=False, repr=False)
class OrderPosterior(OneTable, PicturedTable):
    """The result of `order_mcmc`. It prints as a table of edges."""

    names: tuple[str, ...]
    """The variables, sorted."""
    matrix: Array
    """matrix[i, j] = P(names[i] → names[j] | data)."""
    error: Array
    """The Monte Carlo standard error of each."""
    by_chain: Array
    """by_chain[c]: the same matrix from chain c alone."""
    log_scores: Array
    """log_scores[c, t]: ln p(data, order) of the t-th order that chain c kept, up to a constant."""
    acceptance: Array
    """The share of its moves that each chain made."""
    best: Dag
    """The best graph of all orders that were kept."""
    best_score: float
    corrected: bool
    """Whether every graph has the same prior probability; otherwise every order has."""
    weight_ess: float
    """With the correction, how many graphs of equal weight the weighted graphs are worth; else the number of orders."""
    finished: bool
    seconds: float

    @cached_property
    def r_hat(self) -> float:
        """The split R-hat of the orders' scores: near 1 when the chains agree."""
        return r_hat(self.log_scores)

    @cached_property
    def ess(self) -> float:
        """How many independent orders the kept orders are worth, by their scores."""
        return effective(self.log_scores)

    @cached_property
    def differences(self) -> Array:
        """How far apart the chains are about each edge: the largest of their posteriors less the smallest."""
        return np.asarray(self.by_chain.max(axis=0) - self.by_chain.min(axis=0))

    @property
    def largest_difference(self) -> float:
        """The largest of `differences`."""
        return float(self.differences.max())

    @property
    def mean_difference(self) -> float:
        """The mean of `differences` over all pairs of variables."""
        n = len(self.names)
        return float(self.differences.sum() / max(1, n * (n - 1)))

    @property
    def agreed(self) -> bool:
        """Whether the chains agree: R-hat at most 1.1, and no edge further apart than 0.1."""
        return self.r_hat <= AGREED and self.largest_difference <= APART

    @cached_property
    def edges(self) -> tuple[PosteriorEdge, ...]:
        """The edges that some order has, the most probable first."""
        order = np.lexsort((*np.indices(self.matrix.shape)[::-1].reshape(2, -1), -self.matrix.ravel().round(12)))
        places = [divmod(k, len(self.names)) for k in order.tolist() if self.matrix.flat[k] > 0]
        numbers = [(float(self.matrix[at]), float(self.error[at])) for at in places]
        return tuple(PosteriorEdge(self.names[i], self.names[j], *two) for (i, j), two in zip(places, numbers, strict=True))

    def probability(self, parent: str, child: str) -> float:
        """P(parent → child | data)."""
        return float(self.matrix[self._number(parent), self._number(child)])

    def adjacent(self, a: str, b: str) -> float:
        """P(a → b or b → a | data)."""
        return self.probability(a, b) + self.probability(b, a)

    def _scene(self) -> Picture:
        """Each pair in its more probable direction, if there is an edge with a probability of `LIKELY` at least."""
        both, towards = self.matrix + self.matrix.T, self.matrix - np.tril(np.full_like(self.matrix, 1e-12))
        pairs = np.argwhere((both >= LIKELY) & (towards > towards.T)).tolist()
        chosen = {(self.names[i], self.names[j]): float(both[i, j]) for i, j in pairs}
        picture = Picture(tuple(map(PictureNode, self.names)), tuple(PictureEdge(a, b) for a, b in chosen))
        return picture.weigh_edges(chosen, "posterior of an edge", most=1.0).noting(f"edges of at least {LIKELY:g}")

    def picture(self, against: Pictured | None = None, *, focus: Focus = None, steps: int = 1) -> Picture:
        """The graph as a picture, edges as wide as they are probable; `against` another, or the part around a `focus`."""
        return self._view(against, focus, steps)

    def plot(self, ax: Any = None) -> Any:
        """The posteriors of all edges by the first chain and by the second, which agree where they lie on the diagonal; by
        matplotlib, gives the axes."""
        from suffice.basis.pictures.plots import plot_against

        a, b = self.by_chain[0], self.by_chain[min(1, len(self.by_chain) - 1)]
        apart = ~np.eye(len(self.names), dtype=bool)
        title = f"R-hat {self.r_hat:.3f}, edges differ by {self.largest_difference:.3f} at most"
        return plot_against(ax, a[apart], b[apart], x="posterior, chain 1", y="posterior, chain 2", title=title)

    def to_frame(self) -> Any:
        """The edges as a data frame."""
        return frame({name: [getattr(edge, name) for edge in self.edges] for name in PosteriorEdge._fields})

    def _number(self, name: str) -> int:
        if name not in self.names:
            raise GraphError(f"there is no variable {name!r}{nearest(str(name), self.names)}")
        return self.names.index(name)

    def _headline(self) -> str:
        chains, samples = self.log_scores.shape
        prior = "every graph" if self.corrected else "every order (graphs that fit more orders are favoured: the order bias)"
        worth = f", weights as good as {self.weight_ess:,.0f} equal ones" if self.corrected else ""
        verdict = "agree" if self.agreed else "DISAGREE: take more samples and a longer burn-in"
        stopped = "" if self.finished else "; stopped before its end"
        return (
            f"edge posteriors of {len(self.names):,} variables; uniform prior over {prior}\n"
            f"{chains} chains of {samples:,} orders, as good as {self.ess:,.0f} independent ones{worth}; "
            f"{self.acceptance.mean():.0%} of moves made; {self.seconds:.3g} s{stopped}\n"
            f"the chains {verdict}: R-hat {self.r_hat:.3f}, edges differ by {self.largest_difference:.3f} at most, "
            f"{self.mean_difference:.2g} on average"
        )

    def _table(self) -> tuple[list[str], list[list[object]]]:
        rows: list[list[object]] = [[e.parent, e.child, f"{e.posterior:.3f}", f"{e.error:.1g}"] for e in self.edges[:N_SHOWN]]
        return ["parent", "child", "posterior", "error"], rows

    def _below(self) -> str:
        return f"\n... and {len(self.edges) - N_SHOWN:,} more; see edges" if len(self.edges) > N_SHOWN else ""


def r_hat(draws: Array) -> float:
    """The split R̂ of draws[chain, time]: the spread of all draws over the spread within halves of chains; near 1 is good."""
    halves = _halves(draws)
    within, total = _variances(halves)
    if total == 0:
        return 1.0
    return float(np.sqrt(total / within)) if within > 0 else float("inf")


def effective(draws: Array) -> float:
    """How many independent draws would tell the mean as well: m n / (1 + 2 Σ ρ(t)), ρ the autocorrelation at lag t.

    The sum ends where two neighbouring ρ together are no longer positive (Geyer 1992).
    """
    halves = _halves(draws)
    m, n = halves.shape
    within, total = _variances(halves)
    if total == 0:
        return float(draws.size)
    centred = halves - halves.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, 2 * n, axis=1)
    covariance = np.fft.irfft(spectrum * spectrum.conj(), 2 * n, axis=1)[:, :n].mean(axis=0) / n
    rho = 1.0 - (within - covariance * n / (n - 1)) / total
    rho[0] = 1.0
    pairs = rho[0 : n - n % 2 : 2] + rho[1::2]
    end = int(np.argmax(pairs <= 0)) if (pairs <= 0).any() else len(pairs)
    correlated = 2.0 * float(np.minimum.accumulate(pairs[:end]).sum()) - 1.0
    return float(min(m * n / correlated, draws.size))


def _halves(draws: Array) -> Array:
    n = draws.shape[1] // 2
    return np.concatenate([draws[:, :n], draws[:, -n:]])


def _variances(chains: Array) -> tuple[float, float]:
    """The mean variance within chains, and what it is estimated to be over all of them together."""
    n = chains.shape[1]
    within = float(chains.var(axis=1, ddof=1).mean())
    between = float(chains.mean(axis=1).var(ddof=1))
    return within, within * (n - 1) / n + between
