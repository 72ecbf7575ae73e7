"""What the classifiers have in common: labels become the states of a node, rows become data, a network predicts."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from suffice.engines.data import Data
from suffice.estimators.columns import classes, features, hinted, labelled, rows
from suffice.models.bayes_net import BayesNet


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
