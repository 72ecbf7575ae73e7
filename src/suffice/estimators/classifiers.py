"""Classification by networks, for scikit-learn: labels become the states of a node, rows become data, a network predicts."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from suffice.engines.data import Data
from suffice.errors import FitError, nearest
from suffice.estimators.columns import classes, features, hinted, labelled, rows
from suffice.families.priors import Dirichlet, NormalInverseGamma
from suffice.graphs import Dag
from suffice.learning.fit import fit
from suffice.models.bayes_net import BayesNet
from suffice.recipes import classifiers as recipes
from suffice.recipes.discriminant import discriminant
from suffice.recipes.learn import PRIOR, learn, suitable
from suffice.scores import BIC, Evidence
from suffice.structure.chow_liu import TAN

WEAK = (Dirichlet(1), NormalInverseGamma())


class NetworkClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose `_network` makes a network of rows; `target` is the name of its node of classes."""

    target: str

    def _network(self, data: Data, names: list[str]) -> BayesNet:
        raise NotImplementedError

    def _declarations(self) -> dict[str, Any]:
        """Declarations of columns, and bins for the others."""
        return {"variables": getattr(self, "variables", None), "bins": getattr(self, "bins", None)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the network from rows X (an array or a frame), their labels y and, if given, their weights."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        frame = features(self, X, reset=True)
        self.classes_, codes = classes(y)
        data = rows(frame, X, labelled(self.target, self.classes_, codes), sample_weight, **self._declarations())
        self.network_ = self._network(data, list(frame.columns))
        return self

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """p(class | row), a column per class of `classes_`. Missing cells are summed out; an impossible row has NaN."""
        check_is_fitted(self)
        frame = features(self, X, reset=False)
        with hinted():
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
            probs[lost] = self.network_.query(self.target).probs
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
        prior = suitable(self.prior, data.schema.values())
        if self.dag is not None:
            return fit(self._graph(), data, prior=prior, estimate=self.estimate)
        criterion = self.criterion or (BIC() if prior is None else Evidence(prior))
        method = TAN(self.target) if self.method is None else self.method
        return learn(data, criterion, method, prior, estimate=self.estimate, progress=False)

    def _graph(self) -> Dag:
        graph = self.dag.dag if isinstance(self.dag, BayesNet) else Dag(self.dag)
        if self.target not in graph:
            raise FitError(
                f"the graph has no node {self.target!r} of the classes{nearest(self.target, graph.nodes)}; name it, target=..."
            )
        return graph


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
    >>> from suffice.learning.mixture_setup import Tied
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
        return discriminant(data, self.target, names, covariance=self.covariance, prior=self.prior, estimate=self.estimate)
