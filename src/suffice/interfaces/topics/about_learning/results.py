"""Results: the classes that calls return, for type hints and `isinstance`; nobody makes them by hand."""

from suffice.basis.iteration import Run
from suffice.families.chosen.exponential_node import PoissonRates
from suffice.families.regressions.regression_cpd import RegressionCpd
from suffice.graphs import Comparison
from suffice.learning.complete.lms import LmsRun
from suffice.learning.em import EmRun
from suffice.learning.graph_score import Projection
from suffice.learning.incomplete.em_run import EmPlan
from suffice.learning.incomplete.information import Information
from suffice.learning.incomplete.objective import Collapsed
from suffice.learning.undirected.rbm import RbmRun
from suffice.models.questions.answers import Distribution, Marginals, MostProbable
from suffice.models.questions.mixture import Mixture
from suffice.models.undirected.factor import Factor
from suffice.models.undirected.goodness_of_fit import GoodnessOfFit
from suffice.numerics.exponential.predictives import NegativeBinomial
from suffice.numerics.inference.sampling.boltzmann import LogNormaliser
from suffice.recipes.calibration import Calibration
from suffice.recipes.compared_fits import ComparedFits
from suffice.recipes.cross_validation import CrossValidation
from suffice.recipes.latent.factors import FactorsRun
from suffice.recipes.latent.hmm import HmmRun
from suffice.recipes.latent.mixture import MixtureRun
from suffice.recipes.missing.missingness import Missingness
from suffice.recipes.resampling import Bootstrap
from suffice.recipes.structural.structural_em import StructuralRun
from suffice.structure.independence import Independence
from suffice.structure.results.found import Found
from suffice.structure.results.found_graph import FoundGraph
from suffice.structure.results.plan import Plan

__all__ = [
    "Bootstrap", "Calibration", "Collapsed", "ComparedFits", "Comparison", "CrossValidation", "Distribution", "EmPlan",
    "EmRun", "Factor", "FactorsRun", "Found", "FoundGraph", "GoodnessOfFit", "HmmRun", "Independence", "Information",
    "LmsRun", "LogNormaliser", "Marginals", "Missingness", "Mixture", "MixtureRun", "MostProbable", "NegativeBinomial",
    "Plan", "PoissonRates", "Projection", "RbmRun", "RegressionCpd", "Run", "StructuralRun",
]  # fmt: skip
