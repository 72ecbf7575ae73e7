"""Objectives: what is made as large as it can be. Principles for parameters (`objective=`), scores of graphs (`score=`).

They use families and statistics only. Start with `scores`, functions of a family and a statistic; then `principles`.
"""

from suffice.objectives.principles import (
    L1, L2, Bayes, Conditional, ContrastiveDivergence, Hamming, Likelihood, Margin, MaxEntropy, Objective, PenaltySum, Perceptron,
    PseudoLikelihood,
)  # fmt: skip

__all__ = [
    "L1", "L2", "Bayes", "Conditional", "ContrastiveDivergence", "Hamming", "Likelihood", "Margin", "MaxEntropy", "Objective",
    "PenaltySum", "Perceptron", "PseudoLikelihood",
]  # fmt: skip
