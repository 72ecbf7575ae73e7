"""Classification by a Bayesian network, given or found, for scikit-learn."""

from __future__ import annotations

from typing import Any

from suffice.engines.data import Data
from suffice.errors import FitError, nearest
from suffice.estimators.classifier import NetworkClassifier
from suffice.graphs import Dag
from suffice.learning.fit import fit
from suffice.models.bayes_net import BayesNet
from suffice.recipes.learn import PRIOR, learn, suitable
from suffice.scores import BIC, Evidence
from suffice.structure.chow_liu import TAN


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

    def __init__(
        self,
        dag: Any = None,
        *,
        method: Any = None,
        criterion: Any = None,
        prior: Any = PRIOR,
        bins: Any = None,
        variables: Any = None,
        estimate: Any = None,
        target: str = "class",
    ) -> None:
        self.dag = dag
        self.method = method
        self.criterion = criterion
        self.prior = prior
        self.bins = bins
        self.variables = variables
        self.estimate = estimate
        self.target = target

    def _network(self, data: Data, names: list[str]) -> BayesNet:
        # a clone has a copy of the default, which `suitable` would not know
        prior = suitable(PRIOR if self.prior == PRIOR else self.prior, data.schema.values())
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
