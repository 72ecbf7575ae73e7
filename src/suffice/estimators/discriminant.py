"""Gaussian discriminant analysis for scikit-learn."""

from __future__ import annotations

from typing import Any

from suffice.engines.data import Data
from suffice.estimators.classifier import NetworkClassifier
from suffice.families.priors import Dirichlet, NormalInverseGamma
from suffice.models.bayes_net import BayesNet
from suffice.recipes.discriminant import discriminant

PRIOR = (Dirichlet(1), NormalInverseGamma())


class GaussianDiscriminant(NetworkClassifier):
    """Gaussian discriminant analysis, quadratic or linear; see `suffice.discriminant`.

    `covariance` is `Full()` (the default: quadratic), `Tied()` (linear), `Diagonal()` or `Spherical()`. The parameters are
    posterior means (`estimate=Mode()`: modes) under Dirichlet(1) and NormalInverseGamma(), worth one row, so that small classes
    and collinear columns have a posterior, too. `prior=None` is maximum likelihood, as in scikit-learn's
    LinearDiscriminantAnalysis and QuadraticDiscriminantAnalysis.

    >>> import numpy as np
    >>> from suffice.learning.mixture_setup import Tied
    >>> X = np.array([[1.0, 0.0], [2.0, 0.5], [3.0, 0.0], [5.0, 1.0], [6.0, 2.0], [7.0, 1.0]])
    >>> model = GaussianDiscriminant(Tied(), prior=None).fit(X, [0, 0, 0, 1, 1, 1])
    >>> model.predict_proba([[4.0, 1.0]]).round(4)
    array([[0.1091, 0.8909]])
    """

    def __init__(self, covariance: Any = None, *, prior: Any = PRIOR, estimate: Any = None, target: str = "class") -> None:
        self.covariance = covariance
        self.prior = prior
        self.estimate = estimate
        self.target = target

    def _network(self, data: Data, names: list[str]) -> BayesNet:
        return discriminant(data, self.target, names, covariance=self.covariance, prior=self.prior, estimate=self.estimate)
