"""How far the table of all variables is from what an undirected model expects of it, and how well its weights are known.

    information = N Cov[features],    Cov = ∂ E[features] / ∂ weights

The derivative is taken of what the junction tree expects, by central differences, one free parameter at a time; standard errors
are from its inverse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import sc
from suffice.basis.output.display import OneTable
from suffice.engines.engine import Block
from suffice.errors import ModelError, StatisticsError, TooLarge, listing
from suffice.models.undirected.factor import Terms, log_prob_of_complete
from suffice.models.undirected.markov_parts import MarkovParts
from suffice.numerics.inference.finite.network import Array
from suffice.objectives.principles import Likelihood, MaxEntropy
from suffice.statistics import Counts, Statistics
from suffice.statistics.counts import n_configurations, sizes

MAX_TABLE = 2**20
"""Cells of the table of all variables up to which the fitted zeros in it are counted."""
MAX_DESIGN = 2**25
"""Numbers in the table of cells × parameters up to which the parameters that zeros leave are counted."""


@dataclass(frozen=True, repr=False)
class GoodnessOfFit(OneTable):
    """`deviance` (G²) and `pearson` (X²) on `df` degrees of freedom, with their p values.

    Where cells have an expectation of zero (`n_fitted_zeros`), the estimate is on the boundary: `df` counts as if there were
    none, `df_adjusted` leaves out these cells and the parameters that they took with them (Bishop, Fienberg & Holland 1975,
    p. 115). It is None where the table is too large to count.

    >>> GoodnessOfFit(6.5, 6.0, 3, 0, 3).p_value.__round__(4)
    0.0897
    """

    deviance: float
    pearson: float
    df: int
    n_fitted_zeros: int | None
    df_adjusted: int | None

    @property
    def p_value(self) -> float:
        """P(χ² ≥ deviance) at `df`."""
        return _p(self.deviance, self.df)

    @property
    def p_value_adjusted(self) -> float:
        """P(χ² ≥ deviance) at `df_adjusted`."""
        return float("nan") if self.df_adjusted is None else _p(self.deviance, self.df_adjusted)

    @property
    def p_value_pearson(self) -> float:
        """P(χ² ≥ X²) at `df`."""
        return _p(self.pearson, self.df)

    def _table(self) -> tuple[list[str], list[list[object]]]:
        rows: list[list[object]] = [["deviance G²", self.deviance, self.df, self.p_value]]
        rows.append(["Pearson's X²", self.pearson, self.df, self.p_value_pearson])
        if self.n_fitted_zeros:
            rows.append(
                [f"G², without {self.n_fitted_zeros} fitted zeros", self.deviance, self.df_adjusted, self.p_value_adjusted]
            )
        return ["", "value", "df", "p"], rows


def _p(value: float, df: int) -> float:
    return float(sc.chdtrc(df, max(value, 0.0))) if df > 0 else float("nan")


def goodness_of_fit(net: MarkovParts, statistics: Statistics) -> GoodnessOfFit:
    """The fit of a network to the table of all its variables, which the statistics must hold."""
    names = list(net.variables)
    try:
        seen = statistics.counts(names)
    except StatisticsError:
        raise ModelError(
            f"how well the model fits is judged by the table of {listing(names)} together, which these statistics do not hold "
            "(`fit` gathers it from rows, up to a limit): gather(data, LogLinear([names]))"
        ) from None
    keys, n = seen.listed()
    expected = statistics.weight * np.exp(log_prob_of_cells(net, seen, keys))
    with np.errstate(divide="ignore", invalid="ignore"):
        deviance = 2.0 * float((n * np.log(n / expected)).sum())
        off = float(((n - expected) ** 2 / expected).sum())
    pearson = off + max(statistics.weight - float(expected.sum()), 0.0)  # cells without rows have their expectation
    zeros, adjusted = _adjust_degrees(net, seen)
    return GoodnessOfFit(deviance, pearson, net.df, zeros, net.df if zeros == 0 else adjusted)


def log_prob_of_cells(net: MarkovParts, table: Counts, keys: npt.NDArray[np.int64]) -> Array:
    """ln p of joint states, by their flat indices in a table of all variables."""
    codes = dict(zip(table.names, np.unravel_index(keys, sizes(table.variables)), strict=True)) if table.names else {}
    return log_prob_of_complete(net.factors, net.log_normaliser, Block(codes, np.ones(len(keys))))


def _adjust_degrees(net: MarkovParts, table: Counts) -> tuple[int | None, int | None]:
    """How many cells are expected to be empty, and what is left of the degrees of freedom without them."""
    if all(np.isfinite(f.log).all() for f in net.factors):
        return 0, None
    cells = n_configurations(table.variables)
    if cells > MAX_TABLE:
        return None, None
    kept = np.flatnonzero(np.isfinite(log_prob_of_cells(net, table, np.arange(cells))))
    terms = net.terms
    contrasts = terms.contrasts
    if len(kept) * contrasts.shape[1] > MAX_DESIGN:
        return cells - len(kept), None
    design = np.ones((len(kept), 1 + contrasts.shape[1]))
    design[:, 1:] = (terms.design(table.names, kept) @ contrasts).toarray()
    return cells - len(kept), len(kept) - int(np.linalg.matrix_rank(design))


STEP = 1e-4
"""Errors of the differences are about its square, and rounding over it: 1e-8 of the information."""
MAX_WORK = 2e10
"""Cells of all trees together that are run for it: a minute or so."""


def standard_errors(net: MarkovParts) -> Array:
    """The standard error of each weight, in the order of the terms."""
    if net.penalty is not None or net.prior is not None:
        raise ModelError("standard errors are of maximum likelihood estimates: a penalty or a prior has moved this one")
    if not all(np.isfinite(f.log).all() for f in net.factors):
        raise ModelError(
            "some cells are expected never: the estimate is on the boundary, and its weights have no standard errors"
        )
    if not isinstance(net.objective, (Likelihood, MaxEntropy)):
        raise ModelError("standard errors are of maximum likelihood estimates, and this is none")
    terms = Terms.of(net.model, net.variables)
    contrasts = terms.contrasts.toarray()
    if net.n_parameters < contrasts.shape[1]:
        raise ModelError("some features are sums of others: their weights are not unique, and have no standard errors")
    contrasts = contrasts / terms.units[:, None]
    information = net.summary().weight * contrasts.T @ _curvature(terms, net, contrasts)
    covariance = np.linalg.pinv(information, hermitian=True, rcond=1e-11)
    return np.asarray(np.sqrt(np.maximum(((contrasts @ covariance) * contrasts).sum(axis=1), 0.0)))


def _curvature(terms: Terms, net: MarkovParts, contrasts: Array) -> Array:
    """∂ E[features] / ∂ free parameters: weights × free parameters. Factors beyond those of the model are a base measure."""
    tree, fixed = terms.tree(net.factors[len(terms.scopes) :])
    k = contrasts.shape[1]
    if 2.0 * k * tree.n_cells > MAX_WORK:
        raise TooLarge(f"standard errors of {k:,} parameters need {2 * k:,} runs of a tree of {tree.n_cells:.3g} cells: too many")
    columns = []
    for j in range(k):
        up, down = (
            tree(np.concatenate([terms.log_tables(net.flat_weights + s * STEP * contrasts[:, j]), fixed])).probs[: terms.n_cells]
            for s in (1.0, -1.0)
        )
        columns.append(terms.by_weight(up - down) / (2.0 * STEP))
    return np.column_stack(columns)
