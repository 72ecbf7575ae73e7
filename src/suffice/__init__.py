"""Suffice learns probabilistic graphical models from data: all that matters about the data is its sufficient statistics.

>>> import suffice as sf
>>> bn = sf.fit("rain -> wet", {"rain": ["no", "yes", "yes"], "wet": ["no", "yes", "yes"]}, prior=sf.BDeu(1))
>>> bn["wet"].probs.shape
(2, 2)

Here is what most days need; the rest is in modules by topic, `sf.priors`, `sf.methods`, `sf.regressions` and so on, listed in
`dir(sf)`. Each name is imported when it is first used, so that `import suffice` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from suffice.basis import VERSION

__version__ = VERSION

_TOPICS = f"{__path__[0]}/interfaces/topics"
__path__ += [f"{_TOPICS}/about_models", f"{_TOPICS}/about_learning", _TOPICS]  # so that `import suffice.priors` finds its file

_NAMES = {
    "engines.data": "Data",
    "engines.scan": "scan",
    "engines.sequences.sequences": "sequences",
    "engines.spark": "Spark",
    "errors": "SufficeError SufficeNote",
    "interfaces.explorer.serving": "explore",
    "families.by_hand": "Gaussian",
    "families.gathering": "gather",
    "families.priors.priors": "BDeu BGe Dirichlet K2 NormalInverseGamma",
    "families.protocol.family": "Mean Mode",
    "families.regressions.logistic": "Logistic",
    "formats": "load read table write",
    "graphs": "Cpdag Dag Graph Template shd",
    "basis.iteration": "Run",
    "learning.em": "em",
    "learning.fit": "fit",
    "learning.gradient": "gradient",
    "learning.graph_score": "score",
    "models.networks": "BayesNet MarkovNet",
    "models.chain": "Chain",
    "models.crf": "Crf",
    "models.divergence": "BDe",
    "models.linear_chain.windows": "LinearChain Window",
    "models.undirected.log_linear": "Ising LogLinear Pairwise",
    "objectives.principles": "Conditional ContrastiveDivergence L1 L2 Likelihood Margin MaxEntropy PseudoLikelihood",
    "recipes.calibration": "calibration",
    "recipes.classifiers": "naive_bayes",
    "recipes.cross_validation": "cross_validate",
    "recipes.latent.factors": "factors",
    "recipes.latent.hmm": "hmm",
    "recipes.latent.mixture": "mixture",
    "recipes.learn": "learn",
    "recipes.missing.missingness": "missingness",
    "recipes.resampling": "bootstrap",
    "recipes.structural.structural_em": "structural_em",
    "interfaces.reports": "report",
    "objectives.scores": "AIC BIC Evidence LogLikelihood",
    "statistics": "Statistics",
    "structure.constraints": "Constraints Forbid Require Tiers",
    "structure.methods.exact": "Exact",
    "structure.methods.hill_climb": "HillClimb",
    "structure.methods.orders": "Orders",
    "structure.methods.pc": "PC",
    "structure.search": "search",
    "structure.undirected.decomposable": "Decomposable",
    "structure.undirected.graphical_lasso": "GraphicalLasso",
    "structure.undirected.neighbourhoods": "Neighbourhoods",
    "basis.variables": "Bins Count Finite Real",
}
"""The public names of each module."""

_MODULES = (
    "chains choices constraints estimators exponential formats graphs independence information labels latent limits methods"
    " objectives plates priors registry regressions reports results scores statistics undirected"
)
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOME)

if TYPE_CHECKING:
    from suffice import formats as formats, graphs as graphs, objectives as objectives, statistics as statistics
    from suffice.basis import registry as registry
    from suffice.interfaces import estimators as estimators, reports as reports
    from suffice.interfaces.topics.about_learning import (
        choices as choices, constraints as constraints, independence as independence, information as information,
        limits as limits, methods as methods, results as results, scores as scores,
    )  # fmt: skip
    from suffice.interfaces.topics.about_models import (
        chains as chains, labels as labels, latent as latent, plates as plates, priors as priors,
        regressions as regressions, undirected as undirected,
    )  # fmt: skip
    from suffice.numerics import exponential as exponential
    from suffice.engines.data import Data as Data
    from suffice.engines.scan import scan as scan
    from suffice.engines.sequences.sequences import sequences as sequences
    from suffice.engines.spark import Spark as Spark
    from suffice.errors import SufficeError as SufficeError, SufficeNote as SufficeNote
    from suffice.interfaces.explorer.serving import explore as explore
    from suffice.families.by_hand import Gaussian as Gaussian
    from suffice.families.gathering import gather as gather
    from suffice.families.priors.priors import (
        BDeu as BDeu, BGe as BGe, Dirichlet as Dirichlet, K2 as K2, NormalInverseGamma as NormalInverseGamma,
    )  # fmt: skip
    from suffice.families.protocol.family import Mean as Mean, Mode as Mode
    from suffice.families.regressions.logistic import Logistic as Logistic
    from suffice.formats import load as load, read as read, table as table, write as write
    from suffice.graphs import Cpdag as Cpdag, Dag as Dag, Graph as Graph, Template as Template, shd as shd
    from suffice.basis.iteration import Run as Run
    from suffice.learning.em import em as em
    from suffice.learning.fit import fit as fit
    from suffice.learning.gradient import gradient as gradient
    from suffice.learning.graph_score import score as score
    from suffice.models.networks import BayesNet as BayesNet, MarkovNet as MarkovNet
    from suffice.models.chain import Chain as Chain
    from suffice.models.crf import Crf as Crf
    from suffice.models.divergence import BDe as BDe
    from suffice.models.linear_chain.windows import LinearChain as LinearChain, Window as Window
    from suffice.models.undirected.log_linear import Ising as Ising, LogLinear as LogLinear, Pairwise as Pairwise
    from suffice.objectives.principles import (
        Conditional as Conditional, ContrastiveDivergence as ContrastiveDivergence, L1 as L1, L2 as L2,
        Likelihood as Likelihood, Margin as Margin, MaxEntropy as MaxEntropy, PseudoLikelihood as PseudoLikelihood,
    )  # fmt: skip
    from suffice.recipes.calibration import calibration as calibration
    from suffice.recipes.classifiers import naive_bayes as naive_bayes
    from suffice.recipes.cross_validation import cross_validate as cross_validate
    from suffice.recipes.latent.factors import factors as factors
    from suffice.recipes.latent.hmm import hmm as hmm
    from suffice.recipes.latent.mixture import mixture as mixture
    from suffice.recipes.learn import learn as learn
    from suffice.recipes.missing.missingness import missingness as missingness
    from suffice.recipes.resampling import bootstrap as bootstrap
    from suffice.recipes.structural.structural_em import structural_em as structural_em
    from suffice.interfaces.reports import report as report
    from suffice.objectives.scores import AIC as AIC, BIC as BIC, Evidence as Evidence, LogLikelihood as LogLikelihood
    from suffice.statistics import Statistics as Statistics
    from suffice.structure.constraints import (
        Constraints as Constraints, Forbid as Forbid, Require as Require, Tiers as Tiers,
    )  # fmt: skip
    from suffice.structure.methods.exact import Exact as Exact
    from suffice.structure.methods.hill_climb import HillClimb as HillClimb
    from suffice.structure.methods.orders import Orders as Orders
    from suffice.structure.methods.pc import PC as PC
    from suffice.structure.search import search as search
    from suffice.structure.undirected.decomposable import Decomposable as Decomposable
    from suffice.structure.undirected.graphical_lasso import GraphicalLasso as GraphicalLasso
    from suffice.structure.undirected.neighbourhoods import Neighbourhoods as Neighbourhoods
    from suffice.basis.variables import Bins as Bins, Count as Count, Finite as Finite, Real as Real
else:

    def __getattr__(name: str) -> Any:
        if name in _MODULES.split():
            return import_module(f"suffice.{name}")
        home = _HOME.get(name)
        if home is None:
            from suffice.errors.earlier import TOPIC, tell_of_place

            if name not in TOPIC:
                raise AttributeError(f"module 'suffice' has no attribute {name!r}")
            tell_of_place(name)
            home = TOPIC[name]
        globals()[name] = value = getattr(import_module(f"suffice.{home}"), name)
        return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES.split(), "__version__"])
