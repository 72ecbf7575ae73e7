"""Priors of parameters: each imagines the statistics of rows that were not seen. `by_evidence` finds the best numbers of one."""

from suffice.families.chosen.node_kinds import Conjugate
from suffice.families.hierarchical.hierarchical import HierarchicalDirichlet
from suffice.families.hierarchical.logistic_normal import LogisticNormal
from suffice.families.priors.empirical_bayes import EmpiricalBayes
from suffice.families.priors.number_priors import KnownVariance
from suffice.families.priors.priors import K2, BDeu, BDs, BGe, Dirichlet, Gamma, NormalInverseGamma, NormalWishart
from suffice.learning.graph_score import by_evidence
from suffice.models.divergence import BDe

__all__ = [
    "K2", "BDe", "BDeu", "BDs", "BGe", "Conjugate", "Dirichlet", "EmpiricalBayes", "Gamma", "HierarchicalDirichlet",
    "KnownVariance", "LogisticNormal", "NormalInverseGamma", "NormalWishart", "by_evidence",
]  # fmt: skip
