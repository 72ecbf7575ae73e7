"""Which chart a distribution has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from suffice.errors import FitError
from suffice.families.categorical import Table
from suffice.families.charts.plain import GaussianChart, TableChart
from suffice.families.charts.rates import RatesChart
from suffice.families.charts.regression import LinearChart, RegressionChart
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.poisson import PoissonRates
from suffice.families.protocol.family import Cpd
from suffice.families.regressions.regression_cpd import RegressionCpd

Chart = TableChart | GaussianChart | RatesChart | RegressionChart


def chart_of(cpd: Cpd) -> Any:
    """The kind of chart that a distribution has.

    >>> from suffice import Finite
    >>> chart_of(Table(Finite("x", ["a", "b"]), (), [0.25, 0.75])).__name__
    'TableChart'
    """
    if isinstance(cpd, Table):
        if cpd.child.family is not None:
            raise FitError(
                f"{cpd.child.name!r} is {cpd.child.family!r}, whose parameters are fewer than the cells of its table; gradients "
                "and information know none of those: use em, and no interval"
            )
        return TableChart
    if isinstance(cpd, ConditionalGaussian):
        return GaussianChart
    if isinstance(cpd, PoissonRates):
        return RatesChart
    if isinstance(cpd, RegressionCpd):
        return LinearChart if cpd.family.normal else RegressionChart
    raise FitError(
        f"{cpd.child.name!r} is a {type(cpd).__name__}; gradients and information are of tables, Gaussians, rates and "
        "regressions: use em"
    )


def still(cpds: Mapping[str, Any]) -> dict[str, Chart]:
    """The charts of distributions that are known: they have no coordinates."""
    charts: dict[str, Chart] = {}
    for name, cpd in cpds.items():
        if isinstance(cpd, Table):
            charts[name] = TableChart.around(cpd, np.zeros(cpd.probs.size))
        elif isinstance(cpd, ConditionalGaussian):
            centre = np.zeros((cpd.variance.size, len(cpd.real_parents)))
            charts[name] = GaussianChart.around(cpd, np.zeros(cpd.variance.size), centre)
        elif isinstance(cpd, PoissonRates):
            charts[name] = RatesChart.around(cpd, np.zeros(cpd.rates.size))
        elif isinstance(cpd, RegressionCpd):
            charts[name] = RegressionChart.around(cpd, np.zeros(cpd.n_parameters), cpd.centre)
    return charts
