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
    "Adjacent": "structure.constraints",
    "BDe": "models.bde",
    "BDeu": "families.priors",
    "BDs": "families.priors",
    "BGe": "families.priors",
    "BIC": "scores",
    "BayesNet": "models.bayes_net",
    "BinomialLogit": "families.responses",
    "Bins": "variables",
    "Candidates": "structure.constraints",
    "ChiSquared": "structure.independence",
    "ChowLiu": "structure.chow_liu",
    "Collapsed": "learning.objective",
    "Conservative": "structure.orientation",
    "Constraints": "structure.constraints",
    "Count": "variables",
    "Counts": "statistics",
    "Cpdag": "graphs",
    "Dag": "graphs",
    "Data": "engines.data",
    "Diagonal": "learning.mixture_setup",
    "Dirichlet": "families.priors",
    "Distribution": "models.answers",
    "EmRun": "learning.em",
    "EmpiricalBayes": "families.empirical_bayes",
    "Evidence": "scores",
    "Exact": "structure.exact",
    "Finite": "variables",
    "FirstSepset": "structure.orientation",
    "FisherZ": "structure.independence",
    "Forbid": "structure.constraints",
    "Found": "structure.found",
    "Full": "learning.mixture_setup",
    "GES": "structure.ges",
    "GSquared": "structure.independence",
    "Gamma": "families.priors",
    "GammaInverse": "families.responses",
    "GammaLog": "families.responses",
    "Gaussian": "families.conditional_gaussian",
    "Gibbs": "inference.sampling",
    "Graph": "graphs",
    "HeldOut": "recipes.mixture_run",
    "HierarchicalDirichlet": "families.hierarchical",
    "HillClimb": "structure.hill_climb",
    "ICL": "recipes.mixture_run",
    "Information": "learning.information",
    "K2": "families.priors",
    "LBFGS": "learning.gradient",
    "LikelihoodWeighting": "inference.sampling",
    "Linear": "families.responses",
    "LmsRun": "learning.lms",
    "LocalScores": "structure.local_scores",
    "LogLikelihood": "scores",
    "Logistic": "families.logistic",
    "LogisticCpd": "families.logistic_cpd",
    "LogisticNormal": "families.logistic_normal",
    "MMHC": "structure.mmhc",
    "Majority": "structure.orientation",
    "Marginals": "models.answers",
    "MaxParents": "structure.constraints",
    "Mean": "families.family",
    "Missingness": "recipes.missingness",
    "Mixture": "models.mixture",
    "MixtureRun": "recipes.mixture_run",
    "Mode": "families.family",
    "Moments": "statistics",
    "MostProbable": "models.answers",
    "MutualInformation": "structure.independence",
    "NegativeBinomial": "families.poisson",
    "NegativeBinomialLog": "families.responses",
    "NormalInverseGamma": "families.priors",
    "NormalWishart": "families.priors",
    "NotAncestor": "structure.constraints",
    "Orders": "structure.orders",
    "OrdinalCpd": "families.ordinal_cpd",
    "PC": "structure.pc",
    "Partial": "learning.plates",
    "Plate": "learning.plates",
    "PoissonLog": "families.responses",
    "PoissonMixture": "models.mixture",
    "PoissonRates": "families.poisson",
    "Pooled": "learning.plates",
    "Probit": "families.responses",
    "Projected": "learning.gradient",
    "Projection": "learning.project",
    "ProportionalOdds": "families.ordinal",
    "Rates": "families.poisson",
    "Real": "variables",
    "Regression": "families.written_regression",
    "RegressionCpd": "families.regression_cpd",
    "RegressionMixture": "models.regression_mixture",
    "Request": "statistics",
    "Require": "structure.constraints",
    "Run": "iteration",
    "Samples": "models.samples",
    "Separate": "learning.plates",
    "Spherical": "learning.mixture_setup",
    "Squarem": "learning.climb",
    "Statistics": "statistics",
    "StructuralRun": "recipes.structural_run",
    "SufficeError": "errors",
    "SufficeNote": "errors",
    "TAN": "structure.chow_liu",
    "Tabu": "structure.tabu",
    "Tied": "learning.mixture_setup",
    "Tiers": "structure.constraints",
    "bootstrap": "recipes.bootstrap",
    "by_evidence": "learning.by_evidence",
    "compare": "graphs",
    "cross_validate": "recipes.cross_validate",
    "discriminant": "recipes.discriminant",
    "em": "learning.em",
    "entropy": "models.divergence",
    "fit": "learning.fit",
    "gather": "families.gathering",
    "gradient": "learning.gradient",
    "independence_test": "structure.independence",
    "kl": "models.divergence",
    "learn": "recipes.learn",
    "lms": "learning.lms",
    "load": "formats",
    "missingness": "recipes.missingness",
    "mixture": "recipes.mixture",
    "n_dags": "graphs",
    "naive_bayes": "recipes.classifiers",
    "observed_information": "learning.information",
    "order_mcmc": "structure.order_mcmc",
    "project": "learning.project",
    "read": "formats",
    "read_tiers": "structure.tiers_file",
    "scan": "engines.scan",
    "score": "learning.fit",
    "search": "structure.search",
    "shd": "graphs",
    "structural_em": "recipes.structural_em",
    "write": "formats",
}

__all__ = [
    "AIC",
    "BIC",
    "GES",
    "ICL",
    "K2",
    "LBFGS",
    "MMHC",
    "PC",
    "TAN",
    "Adjacent",
    "BDe",
    "BDeu",
    "BDs",
    "BGe",
    "BayesNet",
    "BinomialLogit",
    "Bins",
    "Candidates",
    "ChiSquared",
    "ChowLiu",
    "Collapsed",
    "Conservative",
    "Constraints",
    "Count",
    "Counts",
    "Cpdag",
    "Dag",
    "Data",
    "Diagonal",
    "Dirichlet",
    "Distribution",
    "EmRun",
    "EmpiricalBayes",
    "Evidence",
    "Exact",
    "Finite",
    "FirstSepset",
    "FisherZ",
    "Forbid",
    "Found",
    "Full",
    "GSquared",
    "Gamma",
    "GammaInverse",
    "GammaLog",
    "Gaussian",
    "Gibbs",
    "Graph",
    "HeldOut",
    "HierarchicalDirichlet",
    "HillClimb",
    "Information",
    "LikelihoodWeighting",
    "Linear",
    "LmsRun",
    "LocalScores",
    "LogLikelihood",
    "Logistic",
    "LogisticCpd",
    "LogisticNormal",
    "Majority",
    "Marginals",
    "MaxParents",
    "Mean",
    "Missingness",
    "Mixture",
    "MixtureRun",
    "Mode",
    "Moments",
    "MostProbable",
    "MutualInformation",
    "NegativeBinomial",
    "NegativeBinomialLog",
    "NormalInverseGamma",
    "NormalWishart",
    "NotAncestor",
    "Orders",
    "OrdinalCpd",
    "Partial",
    "Plate",
    "PoissonLog",
    "PoissonMixture",
    "PoissonRates",
    "Pooled",
    "Probit",
    "Projected",
    "Projection",
    "ProportionalOdds",
    "Rates",
    "Real",
    "Regression",
    "RegressionCpd",
    "RegressionMixture",
    "Request",
    "Require",
    "Run",
    "Samples",
    "Separate",
    "Spherical",
    "Squarem",
    "Statistics",
    "StructuralRun",
    "SufficeError",
    "SufficeNote",
    "Tabu",
    "Tied",
    "Tiers",
    "bootstrap",
    "by_evidence",
    "compare",
    "cross_validate",
    "discriminant",
    "em",
    "entropy",
    "fit",
    "gather",
    "gradient",
    "independence_test",
    "kl",
    "learn",
    "lms",
    "load",
    "missingness",
    "mixture",
    "n_dags",
    "naive_bayes",
    "observed_information",
    "order_mcmc",
    "project",
    "read",
    "read_tiers",
    "scan",
    "score",
    "search",
    "shd",
    "structural_em",
    "write",
]

if TYPE_CHECKING:
    from suffice.engines.data import Data
    from suffice.engines.scan import scan
    from suffice.errors import SufficeError, SufficeNote
    from suffice.families.conditional_gaussian import Gaussian
    from suffice.families.empirical_bayes import EmpiricalBayes
    from suffice.families.family import Mean, Mode
    from suffice.families.gathering import gather
    from suffice.families.hierarchical import HierarchicalDirichlet
    from suffice.families.logistic import Logistic
    from suffice.families.logistic_cpd import LogisticCpd
    from suffice.families.logistic_normal import LogisticNormal
    from suffice.families.ordinal import ProportionalOdds
    from suffice.families.ordinal_cpd import OrdinalCpd
    from suffice.families.poisson import NegativeBinomial, PoissonRates, Rates
    from suffice.families.priors import K2, BDeu, BDs, BGe, Dirichlet, Gamma, NormalInverseGamma, NormalWishart
    from suffice.families.regression_cpd import RegressionCpd
    from suffice.families.responses import BinomialLogit, GammaInverse, GammaLog, Linear, NegativeBinomialLog, PoissonLog, Probit
    from suffice.families.written_regression import Regression
    from suffice.formats import load, read, write
    from suffice.graphs import Cpdag, Dag, Graph, compare, n_dags, shd
    from suffice.inference.sampling import Gibbs, LikelihoodWeighting
    from suffice.iteration import Run
    from suffice.learning.by_evidence import by_evidence
    from suffice.learning.climb import Squarem
    from suffice.learning.em import EmRun, em
    from suffice.learning.fit import fit, score
    from suffice.learning.gradient import LBFGS, Projected, gradient
    from suffice.learning.information import Information, observed_information
    from suffice.learning.lms import LmsRun, lms
    from suffice.learning.mixture_setup import Diagonal, Full, Spherical, Tied
    from suffice.learning.objective import Collapsed
    from suffice.learning.plates import Partial, Plate, Pooled, Separate
    from suffice.learning.project import Projection, project
    from suffice.models.answers import Distribution, Marginals, MostProbable
    from suffice.models.bayes_net import BayesNet
    from suffice.models.bde import BDe
    from suffice.models.divergence import entropy, kl
    from suffice.models.mixture import Mixture, PoissonMixture
    from suffice.models.regression_mixture import RegressionMixture
    from suffice.models.samples import Samples
    from suffice.recipes.bootstrap import bootstrap
    from suffice.recipes.classifiers import naive_bayes
    from suffice.recipes.cross_validate import cross_validate
    from suffice.recipes.discriminant import discriminant
    from suffice.recipes.learn import learn
    from suffice.recipes.missingness import Missingness, missingness
    from suffice.recipes.mixture import mixture
    from suffice.recipes.mixture_run import ICL, HeldOut, MixtureRun
    from suffice.recipes.structural_em import structural_em
    from suffice.recipes.structural_run import StructuralRun
    from suffice.scores import AIC, BIC, Evidence, LogLikelihood
    from suffice.statistics import Counts, Moments, Request, Statistics
    from suffice.structure.chow_liu import TAN, ChowLiu
    from suffice.structure.constraints import (
        Adjacent,
        Candidates,
        Constraints,
        Forbid,
        MaxParents,
        NotAncestor,
        Require,
        Tiers,
    )
    from suffice.structure.exact import Exact
    from suffice.structure.found import Found
    from suffice.structure.ges import GES
    from suffice.structure.hill_climb import HillClimb
    from suffice.structure.independence import ChiSquared, FisherZ, GSquared, MutualInformation, independence_test
    from suffice.structure.local_scores import LocalScores
    from suffice.structure.mmhc import MMHC
    from suffice.structure.order_mcmc import order_mcmc
    from suffice.structure.orders import Orders
    from suffice.structure.orientation import Conservative, FirstSepset, Majority
    from suffice.structure.pc import PC
    from suffice.structure.search import search
    from suffice.structure.tabu import Tabu
    from suffice.structure.tiers_file import read_tiers
    from suffice.variables import Bins, Count, Finite, Real


_MODULES = ("estimators", "exponential")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"suffice.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'suffice' has no attribute {name!r}")
    value = getattr(import_module(f"suffice.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES, "__version__"])
