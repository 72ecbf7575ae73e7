"""Generalised linear models for scikit-learn: what is predicted is a regression on the features, a node of a network."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import assert_all_finite, check_is_fitted, column_or_1d

from suffice.engines.data import Data
from suffice.engines.passing import passing
from suffice.errors import FitError
from suffice.estimators.classifier import NetworkClassifier
from suffice.estimators.columns import Target, features, rows
from suffice.families import family_of
from suffice.families.family import Mean
from suffice.families.logistic import Logistic
from suffice.families.priors import Dirichlet, NormalInverseGamma, as_prior
from suffice.families.responses import Linear
from suffice.graphs import Dag
from suffice.learning.irls import fitted
from suffice.models.bayes_net import BayesNet
from suffice.models.estimated import estimated
from suffice.variables import Count, Real

FEATURES = (Dirichlet(1), NormalInverseGamma())
"""The prior of the features, which are roots of the network and say nothing about the regression."""


class GLMClassifier(NetworkClassifier):
    """Logistic regression, of two classes or more (softmax), or `family=Probit()`; a node of `network_`.

    `ridge` shrinks the coefficients: half of it times their squares is taken from the log-likelihood, as by scikit-learn's
    LogisticRegression with C = 1/ridge. `ridge=0` is maximum likelihood, which does not exist where a column separates the
    classes: that is refused by name. Text, categories and booleans of a frame are coded by an indicator of each state but the
    first. `network_[target]` has the coefficients, standard errors and intervals.

    >>> import numpy as np
    >>> model = GLMClassifier(ridge=0).fit(np.array([[1.0], [2.0], [3.0], [4.0]]), [0, 1, 0, 1])
    >>> model.network_["class"].coefficients.round(4)
    array([[0.9082]])
    """

    def __init__(self, family: Any = None, *, ridge: float = 1.0, variables: Any = None, target: str = "class") -> None:
        self.family = family
        self.ridge = ridge
        self.variables = variables
        self.target = target

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags

    def _network(self, data: Data, names: list[str]) -> BayesNet:
        if len(self.classes_) < 2:
            raise FitError(f"{type(self).__name__} needs at least two classes, and y has only 1 class, {self.classes_[0]!r}")
        return _regression(self, data, names, Logistic())


class GLMRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A generalised linear model of a number: `family` is `Linear()` (the default), `PoissonLog()`, `GammaLog()` and so on.

    `predict` gives the mean. `ridge` shrinks the coefficients: half of it times their squares is taken from the log-likelihood
    (at unit dispersion: scikit-learn's Ridge with alpha = ridge, its PoissonRegressor with alpha = ridge / rows); 0 is maximum
    likelihood, in which collinear columns are refused by name. `network_[target]` has the coefficients, standard errors and
    intervals.

    >>> import numpy as np
    >>> model = GLMRegressor(ridge=0).fit(np.array([[1.0], [2.0], [3.0], [4.0]]), [1.0, 3.0, 2.0, 4.0])
    >>> model.predict([[5.0]]).round(6)
    array([4.5])
    """

    def __init__(self, family: Any = None, *, ridge: float = 1.0, variables: Any = None, target: str = "y") -> None:
        self.family = family
        self.ridge = ridge
        self.variables = variables
        self.target = target

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the regression to rows X (an array or a frame), their values y and, if given, their weights."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        frame = features(self, X, reset=True)
        cells = np.asarray(column_or_1d(y, warn=True), dtype=np.float64)
        assert_all_finite(cells, input_name="y")
        if len(cells) == 1:
            raise FitError("a regression cannot be fitted to 1 sample: nothing is left to vary")
        data = rows(frame, X, Target(cells, self._variable()), sample_weight, self.variables)
        self.network_ = _regression(self, data, list(frame.columns), Linear())
        return self

    def _variable(self) -> Real | Count:
        """A count where the family takes no other numbers."""
        try:
            (self.family or Linear()).check_child(Real(self.target))
        except FitError:
            return Count(self.target)
        return Real(self.target)

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """E[y | row] of each row."""
        check_is_fitted(self)
        columns = features(self, X, reset=False).columns
        cpd = self.network_[self.target]
        variables = {v.name: v for v in cpd.parent_variables}
        parts = [cpd.mean(block.columns, block.n_rows) for block in passing(columns).blocks(variables)]
        return np.concatenate([np.zeros(0), *parts])


def _regression(estimator: Any, data: Data, names: list[str], default: Any) -> BayesNet:
    """The network of a regression on all features."""
    family = default if estimator.family is None else estimator.family
    if isinstance(family, type) or not hasattr(family, "ridge"):
        raise FitError(f"the family of a regression is an object such as {default!r}, not {family!r}")
    known = data.schema
    cpd = fitted(known[estimator.target], [known[n] for n in names], data, replace(family, ridge=estimator.ridge))
    roots = estimated(
        Dag({n: [] for n in names}),
        data.gather([family_of(known[n], []).needs(known[n], []) for n in names]),
        as_prior(FEATURES),
        Mean(),
    )
    dag = Dag({**{n: [] for n in names}, estimator.target: names})
    variables = {**roots.variables, estimator.target: known[estimator.target]}
    info = f"{type(family).__name__} regression from {data.weight:,.10g} rows"
    return BayesNet.of(dag, variables, {**{n: roots[n] for n in names}, estimator.target: cpd}, fit_info=info)
