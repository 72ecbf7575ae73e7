"""Methods: how it is done, all that `method=` takes. Searches for graphs and their parts, ways to climb of `em`, `gradient` and
`fit`, sampling for questions.
"""

from suffice.learning.gradient import LBFGS, Projected
from suffice.learning.incomplete.climb import Incremental, Squarem
from suffice.learning.undirected.ipf import IPF
from suffice.learning.undirected.without_tree import RobbinsMonro
from suffice.numerics.inference.sampling.boltzmann import AIS
from suffice.numerics.inference.sampling.sampling import Gibbs, LikelihoodWeighting
from suffice.recipes.stepwise import Backward, Both, DevianceTest, Forward, Stepwise
from suffice.structure.methods.chow_liu import TAN, ChowLiu
from suffice.structure.methods.exact import Exact
from suffice.structure.methods.ges import GES
from suffice.structure.methods.hill_climb import HillClimb, Tabu
from suffice.structure.methods.orders import Orders
from suffice.structure.methods.orientation import Conservative, FirstSepset, Majority
from suffice.structure.methods.pc import MMHC, PC
from suffice.structure.order_mcmc import order_mcmc
from suffice.structure.results.found import GivenGraph
from suffice.structure.scoring.score_sources import LocalScores
from suffice.structure.undirected.decomposable import Decomposable
from suffice.structure.undirected.graphical_lasso import GraphicalLasso
from suffice.structure.undirected.neighbourhoods import And, Neighbourhoods, Or

__all__ = [
    "AIS", "GES", "IPF", "LBFGS", "MMHC", "PC", "TAN", "And", "Backward", "Both", "ChowLiu", "Conservative", "Decomposable",
    "DevianceTest", "Exact", "FirstSepset", "Forward", "Gibbs", "GivenGraph", "GraphicalLasso", "HillClimb", "Incremental",
    "LikelihoodWeighting", "LocalScores", "Majority", "Neighbourhoods", "Or", "Orders", "Projected", "RobbinsMonro",
    "Squarem", "Stepwise", "Tabu", "order_mcmc",
]  # fmt: skip
