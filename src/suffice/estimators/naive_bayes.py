"""Naive Bayes for scikit-learn."""

from __future__ import annotations

from typing import Any

from suffice.engines.data import Data
from suffice.estimators.classifier import NetworkClassifier
from suffice.models.bayes_net import BayesNet
from suffice.recipes.classifiers import PRIOR, naive_bayes


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

    def __init__(self, prior: Any = PRIOR, *, estimate: Any = None, variables: Any = None, target: str = "class") -> None:
        self.prior = prior
        self.estimate = estimate
        self.variables = variables
        self.target = target

    def _network(self, data: Data, names: list[str]) -> BayesNet:
        return naive_bayes(data, self.target, names, prior=self.prior, estimate=self.estimate)
