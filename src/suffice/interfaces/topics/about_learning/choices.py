"""Choices: by what the best of several sizes or penalties is taken (`choose=`)."""

from suffice.objectives.scores import AIC, BIC
from suffice.recipes.latent.latent_run import ICL
from suffice.structure.undirected.selection import EBIC, HeldOut, StARS

__all__ = ["AIC", "BIC", "EBIC", "ICL", "HeldOut", "StARS"]
