"""Suffice learns probabilistic graphical models from data: all that matters about the data is its sufficient statistics.

>>> import suffice as sf
>>> bn = sf.fit("rain -> wet", {"rain": ["no", "yes", "yes"], "wet": ["no", "yes", "yes"]}, prior=sf.BDeu(1))
>>> bn["wet"].probs.shape
(2, 2)

This file is the whole public interface. Each name is imported when it is first used, so that `import suffice` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "AIC": "scores",
    "BDe": "models.bde",
    "BDeu": "families.priors",
    "BDs": "families.priors",
    "BGe": "families.priors",
    "BIC": "scores",
    "BayesNet": "models.bayes_net",
    "Bins": "variables",
    "Count": "variables",
    "Counts": "statistics",
    "Cpdag": "graphs",
    "Dag": "graphs",
    "Data": "engines.data",
    "Dirichlet": "families.priors",
    "Evidence": "scores",
    "Finite": "variables",
    "Gaussian": "families.conditional_gaussian",
    "Graph": "graphs",
    "K2": "families.priors",
    "LogLikelihood": "scores",
    "Mean": "families.family",
    "Mode": "families.family",
    "Moments": "statistics",
    "NormalInverseGamma": "families.priors",
    "NormalWishart": "families.priors",
    "Real": "variables",
    "Request": "statistics",
    "Statistics": "statistics",
    "SufficeError": "errors",
    "SufficeNote": "errors",
    "compare": "graphs",
    "entropy": "models.divergence",
    "fit": "learning.fit",
    "gather": "families.gathering",
    "kl": "models.divergence",
    "load": "formats",
    "n_dags": "graphs",
    "read": "formats",
    "scan": "engines.scan",
    "score": "learning.fit",
    "shd": "graphs",
    "write": "formats",
}

__all__ = [
    "AIC",
    "BIC",
    "K2",
    "BDe",
    "BDeu",
    "BDs",
    "BGe",
    "BayesNet",
    "Bins",
    "Count",
    "Counts",
    "Cpdag",
    "Dag",
    "Data",
    "Dirichlet",
    "Evidence",
    "Finite",
    "Gaussian",
    "Graph",
    "LogLikelihood",
    "Mean",
    "Mode",
    "Moments",
    "NormalInverseGamma",
    "NormalWishart",
    "Real",
    "Request",
    "Statistics",
    "SufficeError",
    "SufficeNote",
    "compare",
    "entropy",
    "fit",
    "gather",
    "kl",
    "load",
    "n_dags",
    "read",
    "scan",
    "score",
    "shd",
    "write",
]

if TYPE_CHECKING:
    from suffice.engines.data import Data
    from suffice.engines.scan import scan
    from suffice.errors import SufficeError, SufficeNote
    from suffice.families.conditional_gaussian import Gaussian
    from suffice.families.family import Mean, Mode
    from suffice.families.gathering import gather
    from suffice.families.priors import K2, BDeu, BDs, BGe, Dirichlet, NormalInverseGamma, NormalWishart
    from suffice.formats import load, read, write
    from suffice.graphs import Cpdag, Dag, Graph, compare, n_dags, shd
    from suffice.learning.fit import fit, score
    from suffice.models.bayes_net import BayesNet
    from suffice.models.bde import BDe
    from suffice.models.divergence import entropy, kl
    from suffice.scores import AIC, BIC, Evidence, LogLikelihood
    from suffice.statistics import Counts, Moments, Request, Statistics
    from suffice.variables import Bins, Count, Finite, Real


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'suffice' has no attribute {name!r}")
    value = getattr(import_module(f"suffice.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
