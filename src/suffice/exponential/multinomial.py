"""The multinomial distribution: p(x | p) = n!/Π xᵢ! Π pᵢ^xᵢ, the counts of k states in n draws. What it can do is in `draws`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, ModelError
from suffice.exponential.draws import Draws, number_of_states
from suffice.exponential.family import generator
from suffice.exponential.special import lattice, log_binomial, log_multinomial, log_poisson
from suffice.exponential.statistic import aligned
from suffice.exponential.values import Array, held, natural_numbers, observed, plain, shown

if TYPE_CHECKING:
    from suffice.exponential.predictives import DirichletMultinomial


@dataclass(frozen=True, eq=False, repr=False)
class Multinomial(Draws):
    """The counts of `k` states in `n` draws. The conjugate prior is `Dirichlet`, the predictive `DirichletMultinomial`.

    >>> from suffice.exponential import Dirichlet
    >>> seen = Multinomial(4, 3).statistic([[2, 1, 1], [4, 0, 0]])
    >>> Multinomial(4, 3).estimate(seen)
    Multinomial(n=4, probs=[0.75, 0.125, 0.125])
    >>> (Dirichlet([1, 1, 1]) + seen).predictive()
    DirichletMultinomial(n=4, alpha=array([7., 2., 2.]))
    """

    n: Any
    k: Any = None
    probs: Any = None

    event_axes: ClassVar[int] = 1

    def __post_init__(self) -> None:
        n = natural_numbers(self.n, "n of Multinomial", 1)
        if n.ndim:
            raise ModelError(f"n of Multinomial is one number, the same for all that stand side by side, not {self.n!r}")
        k, probs = number_of_states(self.k, self.probs, "Multinomial")
        object.__setattr__(self, "n", int(n))
        object.__setattr__(self, "k", k)
        object.__setattr__(self, "probs", None if probs is None else held(probs))

    @property
    def support(self) -> str:  # type: ignore[override]
        """What x may be, in words."""
        return f"{self.k} counts that sum to {self.n}"

    @property
    def draws(self) -> float:
        return float(self.n)

    def with_probs(self, probs: Any) -> Self:
        return replace(self, probs=probs)

    @property
    def covariance(self) -> Array:
        """n (pᵢ 1[i=j] − pᵢ pⱼ), of all k counts: singular, for they sum to n."""
        p = self._need("probs")
        return np.asarray(self.draws * (p[..., :, None] * np.eye(self.k) - p[..., :, None] * p[..., None, :]))

    def sufficient(self, x: Any) -> Array:
        return self._inside(x)[0][..., :-1]

    def log_base(self, x: Any) -> Array:
        x, inside = self._inside(x)
        return np.where(inside, log_multinomial(x), -np.inf)

    @aligned
    def log_prob(self, x: Any) -> Any:
        """Counts are independent Poisson counts whose sum is known to be n."""
        mean = self.draws * self._need("probs")
        x, inside = self._inside(x)
        return plain(np.where(inside, log_poisson(x, mean).sum(axis=-1) - log_poisson(self.draws, self.draws), -np.inf))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        p = self._need("probs")
        return np.asarray(generator(n, seed).multinomial(self.n, p, (n, *p.shape[:-1])))

    def entropy(self) -> Any:
        """Σᵢ E[−ln Pois(xᵢ; n pᵢ)] + ln Pois(n; n): each xᵢ is binomial, and no term is large."""
        p = self._need("probs")
        x, weight = lattice(self.mean, np.sqrt(self.variance), self.draws)
        chance = weight * np.exp(log_binomial(x, self.draws, p[..., None], 1.0 - p[..., None]))
        logs = log_poisson(x, self.draws * p[..., None])
        return plain(-(chance * np.where(chance > 0.0, logs, 0.0)).sum(axis=(-2, -1)) + log_poisson(self.draws, self.draws))

    def predictive(self, prior: Any) -> DirichletMultinomial:
        from suffice.exponential.predictives import DirichletMultinomial

        return DirichletMultinomial(self.n, plain(self._imagined(prior)))

    def _inside(self, x: Any) -> tuple[Array, npt.NDArray[np.bool_]]:
        """x, and whether it is possible; n times the last state in place of what is not."""
        x = observed(x, "Multinomial")
        if x.ndim == 0 or x.shape[-1] != self.k:
            raise DataError(f"Multinomial is about {self.support}, along the last axis; the shape is {x.shape}")
        inside = ((x >= 0.0) & (x == np.rint(x))).all(axis=-1) & (x.sum(axis=-1) == self.n)
        return np.where(inside[..., None], x, self.n * (np.arange(self.k) == self.k - 1)), inside

    def __repr__(self) -> str:
        return f"Multinomial(n={self.n}, {f'k={self.k}' if self.probs is None else f'probs={shown(self.probs)}'})"
