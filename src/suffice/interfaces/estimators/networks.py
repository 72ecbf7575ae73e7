"""Networks that predict, for scikit-learn: labels become the states of a node, rows become data, and a network answers.

A generalised linear model is one, too: what is predicted is a regression on the features, a node of a network.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Real as Number
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import assert_all_finite, check_is_fitted, column_or_1d

from suffice.basis.libraries import pa
from suffice.basis.variables import Count, Finite, Real
from suffice.engines.data import Data
from suffice.engines.engine import Block
from suffice.engines.scan import rows_of
from suffice.errors import DataError, FitError, listing, nearest
from suffice.families import family_of
from suffice.families.priors.priors import Dirichlet, NormalInverseGamma, as_prior, suitable
from suffice.families.protocol.family import Mean
from suffice.families.regressions.glm import Glm
from suffice.families.regressions.linear_moments import Linear
from suffice.families.regressions.logistic import Logistic
from suffice.graphs import Dag
from suffice.interfaces.estimators.columns import Target, classes, features, rows, states, unseen_state_hint
from suffice.learning.complete.irls import fit_regression
from suffice.learning.fit import fit
from suffice.models.estimation import estimate_network
from suffice.models.networks import BayesNet
from suffice.objectives.scores import BIC, Evidence
from suffice.recipes import classifiers as recipes
from suffice.recipes.learn import PRIOR, learn
from suffice.structure.methods.chow_liu import TAN

WEAK = (Dirichlet(1), NormalInverseGamma())

CLASSES = "Logistic(), Probit(), ProportionalOdds()"
NUMBERS = "Linear(), GammaLog(), GammaInverse(), PoissonLog(), NegativeBinomialLog(), BinomialLogit()"


class NetworkClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose `_network` makes a network of rows; `target` is the name of its node of classes."""

    target: str
    _takes_gaps: ClassVar[bool] = True

    def _network(self, data: Data, names: list[str]) -> BayesNet:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_gaps
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the network from rows X (an array or a frame), their labels y and, if given, their weights."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        frame = features(self, X, reset=True)
        self.classes_, codes = classes(y)
        declared = getattr(self, "variables", None), getattr(self, "bins", None)
        variable = Finite(self.target, states(self.classes_))
        numbered, named = pa.array(codes.astype(np.int32)), pa.array(variable.states, pa.string())
        target = Target(pa.DictionaryArray.from_arrays(numbered, named), variable)
        data = rows(frame, X, target, sample_weight, *declared)
        self.network_ = self._network(data, list(frame.columns))
        return self

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """p(class | row), a column per class of `classes_`. Missing cells are summed out; an impossible row has NaN."""
        check_is_fitted(self)
        frame = features(self, X, reset=False)
        with unseen_state_hint():
            answer = self.network_.predict_proba(frame.columns, self.target)
        return np.stack(list(answer.values()), axis=1)

    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """ln p(class | row)."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each row; of a row that is impossible under the network, the most frequent one."""
        probs = self.predict_proba(X)
        lost = np.isnan(probs[:, 0])
        if lost.any():
            probs[lost] = self.network_.marginals()[self.target].probs
        return np.asarray(self.classes_[probs.argmax(axis=1)])


@dataclass(eq=False, repr=False)
class BayesNetClassifier(NetworkClassifier):
    """A classifier by a Bayesian network of features and class, whose graph is searched for unless `dag` gives it.

    By default a tree-augmented naive Bayes, `method=TAN(target)`: the class is a parent of every feature, and each feature may
    have one more, if the score gains by it. Any other method of `search` may be given; the score, `criterion`, is the evidence
    under the prior, or BIC without one. The parameters are posterior means (`estimate=Mode()`: modes) under BDeu(1),
    NormalInverseGamma() and Gamma() unless another `prior` is given; `prior=None` is maximum likelihood. Columns of numbers are
    linear Gaussians of their parents, or cut into `bins` (5, or `Bins(5)`); text, categories and booleans of a frame have tables;
    `variables` declares columns by name. Nodes of `dag` are named like the features, x0, x1, … for an array, and `target` is the
    node of the classes. Missing cells are learned from by EM.

    >>> import numpy as np
    >>> X = np.array([[1.0, 2.0], [1.2, 2.3], [0.9, 1.9], [3.0, 1.1], [3.1, 0.7], [2.8, 0.9]])
    >>> model = BayesNetClassifier(dag="class -> x0").fit(X, list("aaabbb"))
    >>> model.predict([[1.1, 0.0]])
    array(['a'], dtype='<U1')
    """

    dag: Any = None
    _: KW_ONLY
    method: Any = None
    criterion: Any = None
    prior: Any = PRIOR
    bins: Any = None
    variables: Any = None
    estimate: Any = None
    target: str = "class"

    def _network(self, data: Data, names: list[str]) -> BayesNet:
        prior = suitable(self.prior, data.schema.values(), PRIOR)
        if self.dag is not None:
            graph = self.dag.dag if isinstance(self.dag, BayesNet) else Dag(self.dag)
            if self.target not in graph:
                near = nearest(self.target, graph.nodes)
                raise FitError(f"the graph has no node {self.target!r} of the classes{near}; name it, target=...")
            bn: BayesNet = fit(graph, data, prior=prior, estimate=self.estimate)
            return bn
        criterion = self.criterion or (BIC() if prior is None else Evidence(prior))
        method = TAN(self.target) if self.method is None else self.method
        learned: BayesNet = learn(data, criterion, method, prior, estimate=self.estimate, progress=False)
        return learned


@dataclass(eq=False, repr=False)
class NaiveBayesClassifier(NetworkClassifier):
    """Naive Bayes with features of every kind, missing cells included; see `suffice.naive_bayes`.

    Columns of numbers are normal within a class; text, categories and booleans of a frame have tables. `variables` declares
    others by name, {"visits": Count, "age": Bins(5)} (the columns of an array are x0, x1, …). The parameters are posterior means
    (`estimate=Mode()`: modes) under Dirichlet(1), NormalInverseGamma() and Gamma() unless another `prior` is given; `prior=None`
    is maximum likelihood. `target` is the name of the node of classes in `network_`.

    >>> import numpy as np
    >>> model = NaiveBayesClassifier().fit(np.array([[1.0], [1.2], [3.0], [3.1]]), ["a", "a", "b", "b"])
    >>> model.predict([[1.1], [2.9]])
    array(['a', 'b'], dtype='<U1')
    >>> model.network_.dag
    Dag('class -> x0')
    """

    prior: Any = recipes.PRIOR
    _: KW_ONLY
    estimate: Any = None
    variables: Any = None
    target: str = "class"

    def _network(self, data: Data, names: list[str]) -> BayesNet:
        return recipes.naive_bayes(data, self.target, names, prior=self.prior, estimate=self.estimate)


@dataclass(eq=False, repr=False)
class GaussianDiscriminant(NetworkClassifier):
    """Gaussian discriminant analysis, quadratic or linear; see `suffice.discriminant`.

    `covariance` is `Full()` (the default: quadratic), `Tied()` (linear), `Diagonal()` or `Spherical()`. The parameters are
    posterior means (`estimate=Mode()`: modes) under Dirichlet(1) and NormalInverseGamma(), worth one row, so that small classes
    and collinear columns have a posterior, too. `prior=None` is maximum likelihood, as in scikit-learn's
    LinearDiscriminantAnalysis and QuadraticDiscriminantAnalysis.

    >>> import numpy as np
    >>> from suffice.latent import Tied
    >>> X = np.array([[1.0, 0.0], [2.0, 0.5], [3.0, 0.0], [5.0, 1.0], [6.0, 2.0], [7.0, 1.0]])
    >>> model = GaussianDiscriminant(Tied(), prior=None).fit(X, [0, 0, 0, 1, 1, 1])
    >>> model.predict_proba([[4.0, 1.0]]).round(4)
    array([[0.1091, 0.8909]])
    """

    covariance: Any = None
    _: KW_ONLY
    prior: Any = WEAK
    estimate: Any = None
    target: str = "class"

    def _network(self, data: Data, names: list[str]) -> BayesNet:
        return recipes.discriminant(
            data, self.target, names, covariance=self.covariance, prior=self.prior, estimate=self.estimate
        )


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
    _takes_gaps: ClassVar[bool] = False

    def _network(self, data: Data, names: list[str]) -> BayesNet:
        if len(self.classes_) < 2:
            raise FitError(f"{type(self).__name__} needs at least two classes, and y has only 1 class, {self.classes_[0]!r}")
        family = _family(self, Logistic(ridge=1), CLASSES)
        if family.ordered and not all(isinstance(c, Number) for c in self.classes_.tolist()):
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
        variable = (Count if family.kind is Count else Real)(self.target)
        data = rows(frame, X, Target(cells, variable), sample_weight, self.variables)
        self.network_ = _regression(self, data, list(frame.columns), family)
        return self

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """E[y | row] of each row; where the family has trials, the number of successes in the trials of the row."""
        check_is_fitted(self)
        columns = features(self, X, reset=False).columns
        cpd = self.network_[self.target]
        with unseen_state_hint():
            rows = rows_of(columns).with_variables({v.name: v for v in cpd.parent_variables})
            parts = list(rows.select([v.name for v in cpd.parent_variables]).map(partial(_means, cpd)))
        return np.concatenate([np.zeros(0), *parts])


def _numbers(y: Any, name: str) -> npt.NDArray[np.float64]:
    y = column_or_1d(y, warn=True)
    try:
        cells = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"y holds what is not a number, and {name} predicts numbers: use GLMClassifier") from None
    assert_all_finite(cells, input_name="y")
    return cells


def _means(cpd: Any, block: Block) -> npt.NDArray[np.float64]:
    """E[y | row] of each row."""
    mean, trials = cpd.mean(block.columns, block.n_rows), cpd.family.trials
    return np.asarray(mean if trials is None else mean * block.columns[trials])


def _family(estimator: Any, default: Any, taken: Any) -> Any:
    """The family of an estimator, of a kind it can take, with the ridge that it or the estimator was given."""
    family: Any = default if estimator.family is None else estimator.family
    name = type(estimator).__name__
    if not isinstance(family, Glm):
        what = f"the class {family.__name__}" if isinstance(family, type) else repr(family)
        raise FitError(f"the family of {name} is an object, one of {taken}; not {what}")
    if (family.kind is Finite) != (taken is CLASSES):
        what, other = ("numbers", "classes: use GLMRegressor") if taken is CLASSES else ("classes", "numbers: use GLMClassifier")
        raise FitError(f"{type(family).__name__} is a family of {what}, and {name} predicts {other}")
    ridge = float(estimator.ridge) if isinstance(estimator.ridge, Number) else estimator.ridge
    if ridge is None:
        return family
    # a ridge of 0 is what a family has that was given none, so that it gives way
    if family is not default and family.ridge not in (0, ridge):
        raise FitError(f"the ridge of {type(family).__name__} is {family.ridge!r} and ridge={ridge!r}: give one of the two")
    return replace(family, ridge=ridge)  # type: ignore[type-var]


def _regression(estimator: Any, data: Data, names: list[str], family: Any) -> BayesNet:
    """The network of a regression on all features."""
    for what in ("offset", "trials"):
        name = getattr(family, what)
        if name is not None and name not in names:
            raise FitError(f"the {what} {name!r} of {type(family).__name__} is not one of the features, {listing(names)}")
    known = data.schema
    cpd = fit_regression(known[estimator.target], [known[n] for n in names], data, family)
    # the features are roots of the network, whose parameters say nothing about the regression
    needs = [family_of(known[n], []).needs(known[n], []) for n in names]
    prior = as_prior(suitable(PRIOR, [known[n] for n in names], PRIOR))
    roots = estimate_network(BayesNet, Dag({n: [] for n in names}), data.gather(needs), prior, Mean())
    dag = Dag({**{n: [] for n in names}, estimator.target: names})
    variables = {**roots.variables, estimator.target: known[estimator.target]}
    info = f"{type(family).__name__} regression from {data.weight:,.10g} rows"
    return BayesNet.of(dag, variables, {**{n: roots[n] for n in names}, estimator.target: cpd}, fit_info=info)
