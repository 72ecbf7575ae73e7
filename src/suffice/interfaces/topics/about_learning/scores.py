"""Scores of graphs: of a family and a statistic, the beliefs in graphs that go with them, and what own ones derive from."""

from suffice.objectives.scores import (
    AIC,
    BIC,
    CasteloSiebes,
    EdgePrice,
    Evidence,
    GraphPosterior,
    KollerFriedman,
    LogLikelihood,
    Penalised,
    Score,
    StructurePrior,
)  # fmt: skip

__all__ = [
    "AIC", "BIC", "CasteloSiebes", "EdgePrice", "Evidence", "GraphPosterior", "KollerFriedman", "LogLikelihood", "Penalised",
    "Score", "StructurePrior",
]  # fmt: skip
