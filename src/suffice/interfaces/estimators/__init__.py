"""scikit-learn adapters: networks, regressions, hidden Markov models and taggers with `fit`, `predict` and `predict_proba`.

Each fits a `BayesNet` and keeps it as `network_`: what a classifier of scikit-learn cannot be asked, its network can. They are
cloned, searched over and put in pipelines like any other estimator. Options are objects of the library, `prior=BDeu(1)`; `None`
stands for the default of an option that is not a tuple or a number, since scikit-learn wants defaults that cannot change.
"""

from __future__ import annotations

from suffice.errors import SufficeError

try:
    import sklearn  # noqa: F401
except ImportError:
    raise SufficeError("suffice.estimators needs scikit-learn: pip install suffice[sklearn]") from None

from suffice.interfaces.estimators.hidden_markov import HMM
from suffice.interfaces.estimators.networks import (
    BayesNetClassifier,
    GaussianDiscriminant,
    GLMClassifier,
    GLMRegressor,
    NaiveBayesClassifier,
)
from suffice.interfaces.estimators.tagger import CrfTagger

__all__ = [
    "HMM",
    "BayesNetClassifier",
    "CrfTagger",
    "GLMClassifier",
    "GLMRegressor",
    "GaussianDiscriminant",
    "NaiveBayesClassifier",
]
