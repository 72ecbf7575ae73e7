"""Linear Gaussians: p(y | u, x) = Normal(y; a[u] + b[u]·x, v[u]) for a real child y, real parents x and finite parents u.

Without finite parents u there is one group; with them, one regression per configuration (a conditional Gaussian).

    statistic     per u: count, mean and scatter S of (x, y)
    estimate      b = S_xx⁻¹ S_xy,  a = ȳ − b·x̄,  residual s = S_yy − b·S_xy
                  v = s / N                   (maximum likelihood: divided by N, not by N − 1)
                  v = s / (ν − 2)             (posterior mean)
                  v = s / (ν + 2 + d)         (posterior mode, jointly with the d = 1 + |x| coefficients)
    prior         a, b | v ~ Normal, v ~ inverse gamma, imagined as κ rows of mean and ν rows of scatter
    evidence      Z(prior + seen) − Z(prior) − N/2 ln 2π,  Z = ln Γ(ν/2) − ½ ln κ − ½ ln|S_xx| − ν/2 ln(s/2)

The last line is the normal-inverse-gamma regression, and with a normal-Wishart prior on all variables it is BGe
(Geiger & Heckerman 2002, Annals of Statistics 30, p. 1412; Kuipers, Moffa & Heckerman 2014, same journal 42, p. 1689).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from suffice.errors import FitError, listed
from suffice.families.conditional_gaussian import LOG_2PI, ConditionalGaussian
from suffice.families.family import Estimate, Mean, split
from suffice.families.regression import NO_RESIDUAL, Regression, posteriors, regressions
from suffice.statistics import Moments, Request
from suffice.statistics.configurations import checked_cells, described, n_configurations, sizes
from suffice.variables import Variable


@dataclass(frozen=True)
class LinearGaussian:
    """The family of linear and conditional Gaussians.

    >>> from suffice.variables import Real
    >>> s = Moments((), ("x", "y"), [0], [4.0], [[1.0, 2.0]], [[[4.0, 2.0], [2.0, 3.0]]])
    >>> LinearGaussian().estimate(Real("y"), [Real("x")], s, None, Mean()).coefficients
    array([0.5])
    """

    def needs(self, child: Variable, parents: Sequence[Variable]) -> Request:
        finite, reals = split(parents)
        return Request(tuple(p.name for p in finite), (*(p.name for p in reals), child.name))

    def n_parameters(self, child: Variable, parents: Sequence[Variable]) -> int:
        finite, reals = split(parents)
        return n_configurations(finite) * (len(reals) + 2)

    def log_likelihood(self, child: Variable, seen: Moments) -> float:
        """Σᵤ −N/2 (ln(2π s/N) + 1): the log-likelihood at its maximum."""
        total = 0.0
        for g, N, r in regressions(seen):
            if not estimable(seen, g, r):
                raise no_estimate(child, seen, g, r)
            total -= 0.5 * N * (LOG_2PI + np.log(r.residual / N) + 1.0)
        return float(total)

    def log_evidence(self, child: Variable, seen: Moments, imagined: Moments) -> float:
        """The log-probability of the child's data given the parents', with the parameters integrated out."""
        before = imagined.at(seen.keys)
        after = seen + before
        Z_after, Z_before = (sum(_log_normaliser(s, g, r) for g, _, r in posteriors(child, s)) for s in (after, before))
        return float(Z_after - Z_before - 0.5 * LOG_2PI * seen.total)

    def estimate(
        self, child: Variable, parents: Sequence[Variable], seen: Moments, imagined: Moments | None, how: Estimate
    ) -> ConditionalGaussian:
        finite, reals = split(parents)
        Q = checked_cells(finite, f"the table of {child.name!r}")
        posterior = (seen if imagined is None else seen + imagined).at(np.arange(Q))
        intercept, coefficients, variance = np.full(Q, np.nan), np.full((Q, len(reals)), np.nan), np.full(Q, np.nan)
        for g, N, r in regressions(posterior) if imagined is None else posteriors(child, posterior):
            if imagined is not None:
                variance[g] = _point_variance(child, r.residual, posterior.df[g], len(reals) + 1, how)
            elif estimable(posterior, g, r):
                variance[g] = r.residual / N
            elif (r.collinear is not None and len(reals) + 1 < N) or not finite:
                raise no_estimate(child, posterior, g, r)
            else:
                continue
            coefficients[g] = r.coefficients
            intercept[g] = posterior.mean[g, -1] - r.coefficients @ posterior.mean[g, :-1]
        if imagined is None and not finite and np.isnan(variance[0]):
            raise FitError(f"{child.name!r} cannot be fitted: there are no rows")
        shape = sizes(finite)
        return ConditionalGaussian(
            child,
            tuple(parents),
            intercept.reshape(shape),
            coefficients.reshape(*shape, len(reals)),
            variance.reshape(shape),
            seen,
            imagined,
        )


def estimable(seen: Moments, g: int, r: Regression) -> bool:
    """Whether the maximum likelihood estimate exists: enough rows, no collinear parents, and residual variance.

    Only weights are known here: whole numbers above 1 are taken for numbers of rows, others are judged by the residual alone.
    """
    N = float(seen.count[g])
    enough = not (N > 1 and N.is_integer()) or len(seen.reals) + 1 <= N
    return enough and r.collinear is None and r.residual > NO_RESIDUAL * float(seen.scatter[g, -1, -1])


def no_estimate(child: Variable, seen: Moments, g: int, r: Regression) -> FitError:
    """Why there is no maximum likelihood estimate, in one sentence."""
    rows, d = float(seen.count[g]), len(seen.reals)
    where = f" at {described(int(seen.keys[g]), seen.variables)}" if seen.variables else ""
    what = f"{child.name!r}{where} cannot be fitted from {rows:,.10g} rows by maximum likelihood"
    if rows < d + 1:
        return FitError(f"{what}: its {d} coefficients and variance need at least {d + 1} rows, or a prior")
    if r.collinear is not None:
        column, before = seen.reals[r.collinear], seen.reals[: r.collinear]
        of = f"a linear combination of {listed(before)} or constant" if before else "constant"
        return FitError(f"{what}: its parent {column!r} is {of}; leave it out, or give a prior")
    parents = ", its parents determine it" if d > 1 else ", all its values are the same"
    return FitError(f"{what}: there is no residual variance{parents}; give a prior")


def _log_normaliser(s: Moments, g: int, r: Regression) -> float:
    from scipy.special import gammaln

    kappa, nu = s.count[g], s.df[g]
    return float(gammaln(nu / 2) - 0.5 * np.log(kappa) - 0.5 * r.log_det - 0.5 * nu * np.log(r.residual / 2))


def _point_variance(child: Variable, residual: float, nu: float, d: int, how: Estimate) -> float:
    if not isinstance(how, Mean):
        return residual / (nu + 2.0 + d)
    if nu <= 2.0:
        raise FitError(
            f"the posterior mean of the variance of {child.name!r} does not exist with df {nu:g}; give the prior a df above 2"
        )
    return residual / (nu - 2.0)
