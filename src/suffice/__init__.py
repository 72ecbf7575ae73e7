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

_NAMES = {
    "engines.reading.conll": "read_conll",
    "engines.data": "Data",
    "engines.scan": "scan",
    "engines.sequences.sequences": "Missing Refuse Sequences sequences",
    "engines.spark": "Spark",
    "errors": "SufficeError SufficeNote",
    "families.by_hand": "Gaussian Rates Regression",
    "families.priors.empirical_bayes": "EmpiricalBayes",
    "families.protocol.family": "Mean Mode",
    "families.gathering.gathering": "gather",
    "families.hierarchical.hierarchical": "HierarchicalDirichlet",
    "families.priors.known_variance": "KnownVariance",
    "families.regressions.logistic": "Logistic",
    "families.hierarchical.logistic_normal": "LogisticNormal",
    "families.regressions.ordinal": "ProportionalOdds",
    "families.priors.conjugate": "Conjugate",
    "families.poisson": "NegativeBinomial PoissonRates",
    "families.priors.priors": "BDeu BDs BGe Dirichlet Gamma K2 NormalInverseGamma NormalWishart",
    "families.regressions.regression_cpd": "RegressionCpd",
    "families.regressions.responses": "BinomialLogit GammaInverse GammaLog Linear NegativeBinomialLog PoissonLog Probit",
    "formats": "load networks read table tables write",
    "graphs": "Cpdag Dag Graph Template compare lag n_dags shd",
    "incomplete.first_slices": "Diffuse Free Given Stationary",
    "inference.sampling.ais": "AIS LogNormaliser",
    "inference.sampling.sampling": "Gibbs LikelihoodWeighting",
    "iteration": "Run",
    "learning.ascent.climb": "Squarem",
    "learning.em": "EmRun em",
    "learning.fit": "fit",
    "learning.graph_score": "by_evidence score",
    "learning.gradient": "LBFGS Projected gradient",
    "learning.ascent.information": "Information observed_information",
    "learning.complete.lms": "LmsRun lms",
    "learning.latent.mixture_setup": "Diagonal Full Spherical Tied",
    "learning.incomplete.objective": "Collapsed",
    "learning.complete.plates": "Partial Plate Pooled Separate",
    "learning.complete.project": "Projection project",
    "learning.undirected.contrastive": "RobbinsMonro",
    "learning.undirected.ipf": "IPF",
    "learning.undirected.rbm": "RbmRun rbm",
    "models.questions.answers": "Distribution Marginals MostProbable",
    "models.bayes_net": "BayesNet",
    "models.estimates.bde": "BDe",
    "models.chain": "Chain",
    "models.crf": "Crf",
    "models.estimates.divergence": "entropy kl",
    "models.undirected.factor": "Factor",
    "models.undirected.features": "Features",
    "models.gaussian_markov_net": "GaussianMarkovNet",
    "models.undirected.goodness_of_fit": "GoodnessOfFit",
    "models.linear_chain.derived": "Derived Lower Prefix Shape Suffix",
    "models.linear_chain.transitions": "BIO BIOES Transitions",
    "models.linear_chain.windows": "LinearChain Window",
    "models.undirected.log_linear": "Ising LogLinear Pairwise",
    "models.markov_net": "MarkovNet",
    "models.questions.mixture": "Mixture",
    "models.rbm": "RBM",
    "objectives": "Bayes Conditional ContrastiveDivergence Hamming L1 L2 Likelihood Margin MaxEntropy Perceptron"
    " PseudoLikelihood",
    "recipes.latent.choices": "ICL",
    "recipes.classifiers": "discriminant naive_bayes",
    "recipes.cross_validation": "cross_validate",
    "recipes.latent.hmm": "hmm",
    "recipes.latent.hmm_run": "HmmRun",
    "recipes.learn": "learn",
    "recipes.missing.missingness": "Missingness missingness",
    "recipes.latent.factors": "factors",
    "recipes.latent.factors_run": "FactorsRun",
    "recipes.latent.mixture": "mixture",
    "recipes.latent.mixture_run": "MixtureRun",
    "recipes.resampling": "bootstrap",
    "recipes.stepwise": "Backward Both DevianceTest Forward Stepwise",
    "recipes.structural.structural_em": "StructuralRun structural_em",
    "scores": "AIC BIC CasteloSiebes Evidence GraphPosterior KollerFriedman LogLikelihood Penalised Score StructurePrior",
    "statistics": "Counts Moments Request Statistics",
    "structure.methods.chow_liu": "ChowLiu TAN",
    "structure.constraints.constraints": "Adjacent Candidates Constraints Forbid MaxParents NotAncestor Require Tiers read_tiers",
    "structure.methods.exact": "Exact",
    "structure.results.found": "Found",
    "structure.results.found_graph": "FoundGraph",
    "structure.methods.ges": "GES",
    "structure.methods.hill_climb": "HillClimb Tabu",
    "structure.tests.independence": "ChiSquared FisherZ GSquared Independence IndependenceTest LikelihoodRatio MutualInformation"
    " independence_test",
    "structure.undirected.decomposable": "Decomposable",
    "structure.undirected.graphical_lasso": "GraphicalLasso",
    "structure.undirected.neighbourhoods": "And Neighbourhoods Or",
    "structure.undirected.selection": "EBIC HeldOut StARS",
    "structure.order_mcmc": "order_mcmc",
    "structure.methods.orders": "Orders",
    "structure.methods.orientation": "Conservative FirstSepset Majority",
    "structure.methods.pc": "MMHC PC",
    "structure.scoring.score_sources": "LocalScores",
    "structure.search": "search",
    "variables": "Bins Count Finite Real",
}
"""The public names of each module."""

_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOME)

if TYPE_CHECKING:
    from suffice.engines.reading.conll import read_conll as read_conll
    from suffice.engines.data import Data as Data
    from suffice.engines.scan import scan as scan
    from suffice.engines.sequences.sequences import (
        Missing as Missing,
        Refuse as Refuse,
        Sequences as Sequences,
        sequences as sequences,
    )
    from suffice.engines.spark import Spark as Spark
    from suffice.errors import SufficeError as SufficeError, SufficeNote as SufficeNote
    from suffice.families.by_hand import Gaussian as Gaussian, Rates as Rates, Regression as Regression
    from suffice.families.priors.empirical_bayes import EmpiricalBayes as EmpiricalBayes
    from suffice.families.protocol.family import Mean as Mean, Mode as Mode
    from suffice.families.gathering.gathering import gather as gather
    from suffice.families.hierarchical.hierarchical import HierarchicalDirichlet as HierarchicalDirichlet
    from suffice.families.regressions.logistic import Logistic as Logistic
    from suffice.families.priors.known_variance import KnownVariance as KnownVariance
    from suffice.families.hierarchical.logistic_normal import LogisticNormal as LogisticNormal
    from suffice.families.regressions.ordinal import ProportionalOdds as ProportionalOdds
    from suffice.families.priors.conjugate import Conjugate as Conjugate
    from suffice.families.poisson import NegativeBinomial as NegativeBinomial, PoissonRates as PoissonRates
    from suffice.families.priors.priors import (
        BDeu as BDeu,
        BDs as BDs,
        BGe as BGe,
        Dirichlet as Dirichlet,
        Gamma as Gamma,
        K2 as K2,
        NormalInverseGamma as NormalInverseGamma,
        NormalWishart as NormalWishart,
    )
    from suffice.families.regressions.regression_cpd import RegressionCpd as RegressionCpd
    from suffice.families.regressions.responses import (
        BinomialLogit as BinomialLogit,
        GammaInverse as GammaInverse,
        GammaLog as GammaLog,
        Linear as Linear,
        NegativeBinomialLog as NegativeBinomialLog,
        PoissonLog as PoissonLog,
        Probit as Probit,
    )
    from suffice.formats import (
        load as load,
        networks as networks,
        read as read,
        table as table,
        tables as tables,
        write as write,
    )
    from suffice.graphs import (
        Cpdag as Cpdag,
        Dag as Dag,
        Graph as Graph,
        Template as Template,
        compare as compare,
        lag as lag,
        n_dags as n_dags,
        shd as shd,
    )
    from suffice.incomplete.first_slices import Diffuse as Diffuse, Free as Free, Given as Given, Stationary as Stationary
    from suffice.inference.sampling.ais import AIS as AIS, LogNormaliser as LogNormaliser
    from suffice.inference.sampling.sampling import Gibbs as Gibbs, LikelihoodWeighting as LikelihoodWeighting
    from suffice.iteration import Run as Run
    from suffice.learning.ascent.climb import Squarem as Squarem
    from suffice.learning.em import EmRun as EmRun, em as em
    from suffice.learning.fit import fit as fit
    from suffice.learning.graph_score import by_evidence as by_evidence, score as score
    from suffice.learning.gradient import LBFGS as LBFGS, Projected as Projected, gradient as gradient
    from suffice.learning.ascent.information import Information as Information, observed_information as observed_information
    from suffice.learning.complete.lms import LmsRun as LmsRun, lms as lms
    from suffice.learning.latent.mixture_setup import Diagonal as Diagonal, Full as Full, Spherical as Spherical, Tied as Tied
    from suffice.learning.incomplete.objective import Collapsed as Collapsed
    from suffice.learning.complete.plates import Partial as Partial, Plate as Plate, Pooled as Pooled, Separate as Separate
    from suffice.learning.complete.project import Projection as Projection, project as project
    from suffice.learning.undirected.contrastive import RobbinsMonro as RobbinsMonro
    from suffice.learning.undirected.ipf import IPF as IPF
    from suffice.learning.undirected.rbm import RbmRun as RbmRun, rbm as rbm
    from suffice.models.questions.answers import (
        Distribution as Distribution,
        Marginals as Marginals,
        MostProbable as MostProbable,
    )
    from suffice.models.bayes_net import BayesNet as BayesNet
    from suffice.models.estimates.bde import BDe as BDe
    from suffice.models.chain import Chain as Chain
    from suffice.models.crf import Crf as Crf
    from suffice.models.estimates.divergence import entropy as entropy, kl as kl
    from suffice.models.undirected.factor import Factor as Factor
    from suffice.models.undirected.features import Features as Features
    from suffice.models.gaussian_markov_net import GaussianMarkovNet as GaussianMarkovNet
    from suffice.models.undirected.goodness_of_fit import GoodnessOfFit as GoodnessOfFit
    from suffice.models.linear_chain.derived import (
        Derived as Derived,
        Lower as Lower,
        Prefix as Prefix,
        Shape as Shape,
        Suffix as Suffix,
    )
    from suffice.models.linear_chain.transitions import BIO as BIO, BIOES as BIOES, Transitions as Transitions
    from suffice.models.linear_chain.windows import LinearChain as LinearChain, Window as Window
    from suffice.models.undirected.log_linear import Ising as Ising, LogLinear as LogLinear, Pairwise as Pairwise
    from suffice.models.markov_net import MarkovNet as MarkovNet
    from suffice.models.questions.mixture import Mixture as Mixture
    from suffice.models.rbm import RBM as RBM
    from suffice.objectives import (
        Bayes as Bayes,
    )
    from suffice.objectives import (
        Conditional as Conditional,
        ContrastiveDivergence as ContrastiveDivergence,
        Hamming as Hamming,
        L1 as L1,
        L2 as L2,
        Likelihood as Likelihood,
        Margin as Margin,
        MaxEntropy as MaxEntropy,
        Perceptron as Perceptron,
        PseudoLikelihood as PseudoLikelihood,
    )
    from suffice.recipes.latent.choices import ICL as ICL
    from suffice.recipes.classifiers import discriminant as discriminant, naive_bayes as naive_bayes
    from suffice.recipes.cross_validation import cross_validate as cross_validate
    from suffice.recipes.latent.hmm import hmm as hmm
    from suffice.recipes.latent.hmm_run import HmmRun as HmmRun
    from suffice.recipes.learn import learn as learn
    from suffice.recipes.missing.missingness import Missingness as Missingness, missingness as missingness
    from suffice.recipes.latent.factors import factors as factors
    from suffice.recipes.latent.factors_run import FactorsRun as FactorsRun
    from suffice.recipes.latent.mixture import mixture as mixture
    from suffice.recipes.latent.mixture_run import MixtureRun as MixtureRun
    from suffice.recipes.resampling import bootstrap as bootstrap
    from suffice.recipes.stepwise import (
        Backward as Backward,
        Both as Both,
        DevianceTest as DevianceTest,
        Forward as Forward,
        Stepwise as Stepwise,
    )
    from suffice.recipes.structural.structural_em import StructuralRun as StructuralRun, structural_em as structural_em
    from suffice.scores import (
        AIC as AIC,
        BIC as BIC,
        CasteloSiebes as CasteloSiebes,
        Evidence as Evidence,
        GraphPosterior as GraphPosterior,
        KollerFriedman as KollerFriedman,
        LogLikelihood as LogLikelihood,
        Penalised as Penalised,
        Score as Score,
        StructurePrior as StructurePrior,
    )
    from suffice.statistics import Counts as Counts, Moments as Moments, Request as Request, Statistics as Statistics
    from suffice.structure.methods.chow_liu import ChowLiu as ChowLiu, TAN as TAN
    from suffice.structure.constraints.constraints import (
        Adjacent as Adjacent,
        Candidates as Candidates,
        Constraints as Constraints,
        Forbid as Forbid,
        MaxParents as MaxParents,
        NotAncestor as NotAncestor,
        Require as Require,
        Tiers as Tiers,
        read_tiers as read_tiers,
    )
    from suffice.structure.methods.exact import Exact as Exact
    from suffice.structure.results.found import Found as Found
    from suffice.structure.results.found_graph import FoundGraph as FoundGraph
    from suffice.structure.methods.ges import GES as GES
    from suffice.structure.methods.hill_climb import HillClimb as HillClimb, Tabu as Tabu
    from suffice.structure.tests.independence import (
        ChiSquared as ChiSquared,
        FisherZ as FisherZ,
        GSquared as GSquared,
        Independence as Independence,
        IndependenceTest as IndependenceTest,
        LikelihoodRatio as LikelihoodRatio,
        MutualInformation as MutualInformation,
        independence_test as independence_test,
    )
    from suffice.structure.undirected.decomposable import Decomposable as Decomposable
    from suffice.structure.undirected.graphical_lasso import GraphicalLasso as GraphicalLasso
    from suffice.structure.undirected.neighbourhoods import And as And, Neighbourhoods as Neighbourhoods, Or as Or
    from suffice.structure.undirected.selection import EBIC as EBIC, HeldOut as HeldOut, StARS as StARS
    from suffice.structure.order_mcmc import order_mcmc as order_mcmc
    from suffice.structure.methods.orders import Orders as Orders
    from suffice.structure.methods.orientation import (
        Conservative as Conservative,
        FirstSepset as FirstSepset,
        Majority as Majority,
    )
    from suffice.structure.methods.pc import MMHC as MMHC, PC as PC
    from suffice.structure.scoring.score_sources import LocalScores as LocalScores
    from suffice.structure.search import search as search
    from suffice.variables import Bins as Bins, Count as Count, Finite as Finite, Real as Real


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
