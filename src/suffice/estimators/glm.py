"""Generalised linear models for scikit-learn: what is predicted is a regression on the features, a node of a network."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real as Number
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import assert_all_finite, check_is_fitted, column_or_1d

from suffice.engines.data import Data
from suffice.engines.engine import Block
from suffice.engines.scan import rows_of
from suffice.errors import DataError, FitError, listed
from suffice.estimators.classifiers import NetworkClassifier
from suffice.estimators.columns import Target, features, hinted, rows
from suffice.families import family_of
from suffice.families.family import Mean
from suffice.families.logistic import Logistic
from suffice.families.ordinal import ProportionalOdds
from suffice.families.priors import as_prior
from suffice.families.responses import BinomialLogit, GammaInverse, GammaLog, Linear, NegativeBinomialLog, PoissonLog, Probit
from suffice.graphs import Dag
from suffice.learning.irls import fitted
from suffice.models.bayes_net import BayesNet
from suffice.models.estimated import estimated
from suffice.recipes.learn import PRIOR, suitable
from suffice.variables import Count, Real

CLASSES = (Logistic, Probit, ProportionalOdds)
COUNTS = (PoissonLog, NegativeBinomialLog, BinomialLogit)
NUMBERS = (Linear, GammaLog, GammaInverse, *COUNTS)


@dataclass(eq=False, repr=False)
class GLMClassifier(NetworkClassifier):
    """Logistic regression, of two classes or more (softmax), by default with a ridge of 1; a node of `network_`.

    `family` may also be `Probit()`, of two classes, or `ProportionalOdds()`, of classes that are numbers, in their order. `ridge`
    shrinks the coefficients: half of it times their squares is taken from the log-likelihood, as by scikit-learn's
    LogisticRegression with C = 1/ridge, and `GLMClassifier()` is `LogisticRegression()` with C = 1. A family that is given has
    its own ridge, and none if it says none: `GLMClassifier(Logistic())` is, like `ridge=0`, maximum likelihood. That does not
    exist where a column separates the classes, which is refused by name. Text, categories and booleans of a frame are coded by
    an indicator of each state but the first; `variables` declares columns by name. `network_[target]` has the coefficients,
    standard errors and intervals.

    >>> import numpy as np
    >>> model = GLMClassifier(ridge=0).fit(np.array([[1.0], [2.0], [3.0], [4.0]]), [0, 1, 0, 1])
    >>> model.network_["class"].coefficients.round(4)
    array([[0.9082]])
    """

    family: Any = None
    _: KW_ONLY
    ridge: Any = None
    variables: Any = None
    target: str = "class"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags

    def _network(self, data: Data, names: list[str]) -> BayesNet:
        if len(self.classes_) < 2:
            raise FitError(f"{type(self).__name__} needs at least two classes, and y has only 1 class, {self.classes_[0]!r}")
        family = _family(self, Logistic(ridge=1), CLASSES)
        if isinstance(family, ProportionalOdds) and not all(isinstance(c, Number) for c in self.classes_.tolist()):
            raise FitError(
                f"ProportionalOdds needs to know the order of the classes, which are text, as {str(self.classes_[0])!r}: number "
                "them in their order, y = 0, 1, 2, … (of a pandas category, y.cat.codes)"
            )
        return _regression(self, data, names, family)


@dataclass(eq=False, repr=False)
class GLMRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A generalised linear model of a number, by default linear with a ridge of 1: `GLMRegressor()` is ridge regression.

    `family` is `Linear()`, `PoissonLog()`, `GammaLog()` and so on; an offset or trials are the name of a feature. `predict` gives
    the mean. `ridge` shrinks the coefficients: half of it times their squares is taken from the log-likelihood (at unit
    dispersion: scikit-learn's Ridge with alpha = ridge, its PoissonRegressor with alpha = ridge / rows). `ridge=0` is maximum
    likelihood, for `Linear()` ordinary least squares, in which collinear columns are refused by name. A family that is given has
    its own ridge, and none if it says none: `GLMRegressor(Linear())` is least squares, too. Text, categories and booleans of a
    frame are coded by an indicator of each state but the first; `variables` declares columns by name. `network_[target]` has the
    coefficients, standard errors and intervals.

    >>> import numpy as np
    >>> model = GLMRegressor(ridge=0).fit(np.array([[1.0], [2.0], [3.0], [4.0]]), [1.0, 3.0, 2.0, 4.0])
    >>> model.predict([[5.0]]).round(6)
    array([4.5])
    """

    family: Any = None
    _: KW_ONLY
    ridge: Any = None
    variables: Any = None
    target: str = "y"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the regression to rows X (an array or a frame), their values y and, if given, their weights."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        family = _family(self, Linear(ridge=1), NUMBERS)
        frame = features(self, X, reset=True)
        cells = _numbers(y, type(self).__name__)
        if len(cells) == 1:
            raise FitError("a regression cannot be fitted to 1 sample: nothing is left to vary")
        variable = (Count if isinstance(family, COUNTS) else Real)(self.target)
        data = rows(frame, X, Target(cells, variable), sample_weight, self.variables)
        self.network_ = _regression(self, data, list(frame.columns), family)
        return self

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """E[y | row] of each row; where the family has trials, the number of successes in the trials of the row."""
        check_is_fitted(self)
        columns = features(self, X, reset=False).columns
        cpd = self.network_[self.target]
        with hinted():
            rows = rows_of(columns).with_variables({v.name: v for v in cpd.parent_variables})
            parts = list(rows.take([v.name for v in cpd.parent_variables]).map(Means(cpd)))
        return np.concatenate([np.zeros(0), *parts])


def _numbers(y: Any, name: str) -> npt.NDArray[np.float64]:
    y = column_or_1d(y, warn=True)
    try:
        cells = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"y holds what is not a number, and {name} predicts numbers: use GLMClassifier") from None
    assert_all_finite(cells, input_name="y")
    return cells


@dataclass(frozen=True, eq=False)
class Means:
    """The step that gives E[y | row] of each row."""

    cpd: Any

    def __call__(self, block: Block) -> npt.NDArray[np.float64]:
        mean, trials = self.cpd.mean(block.columns, block.n_rows), self.cpd.family.trials
        return np.asarray(mean if trials is None else mean * block.columns[trials])


def _family(estimator: Any, default: Any, taken: Any) -> Any:
    """The family of an estimator, of a kind it can take, with the ridge that it or the estimator was given."""
    family = default if estimator.family is None else estimator.family
    if not isinstance(family, taken):
        raise _refused(type(estimator).__name__, family, taken)
    ridge = float(estimator.ridge) if isinstance(estimator.ridge, Number) else estimator.ridge
    if ridge is None:
        return family
    # a ridge of 0 is what a family has that was given none, so that it gives way
    if family is not default and family.ridge not in (0, ridge):
        raise FitError(f"the ridge of {type(family).__name__} is {family.ridge!r} and ridge={ridge!r}: give one of the two")
    return replace(family, ridge=ridge)


def _refused(name: str, family: Any, taken: tuple[type, ...]) -> FitError:
    given = type(family).__name__
    if isinstance(family, CLASSES):
        return FitError(f"{given} is a family of classes, and {name} predicts numbers: use GLMClassifier")
    if isinstance(family, NUMBERS):
        return FitError(f"{given} is a family of numbers, and {name} predicts classes: use GLMRegressor")
    objects = ", ".join(f"{kind.__name__}()" for kind in taken)
    what = f"the class {family.__name__}" if isinstance(family, type) else repr(family)
    return FitError(f"the family of {name} is an object, one of {objects}; not {what}")


def _regression(estimator: Any, data: Data, names: list[str], family: Any) -> BayesNet:
    """The network of a regression on all features."""
    for what in ("offset", "trials"):
        name = getattr(family, what)
        if name is not None and name not in names:
            raise FitError(f"the {what} {name!r} of {type(family).__name__} is not one of the features, {listed(names)}")
    known = data.schema
    cpd = fitted(known[estimator.target], [known[n] for n in names], data, family)
    # the features are roots of the network, whose parameters say nothing about the regression
    needs = [family_of(known[n], []).needs(known[n], []) for n in names]
    prior = as_prior(suitable(PRIOR, [known[n] for n in names]))
    roots = estimated(Dag({n: [] for n in names}), data.gather(needs), prior, Mean())
    dag = Dag({**{n: [] for n in names}, estimator.target: names})
    variables = {**roots.variables, estimator.target: known[estimator.target]}
    info = f"{type(family).__name__} regression from {data.weight:,.10g} rows"
    return BayesNet.of(dag, variables, {**{n: roots[n] for n in names}, estimator.target: cpd}, fit_info=info)
