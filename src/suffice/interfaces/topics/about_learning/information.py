"""Information: entropies, divergences and projections of distributions, and what rows say about parameters."""

from suffice.learning.graph_score import project
from suffice.learning.incomplete.information import observed_information
from suffice.models.divergence import entropy, kl

__all__ = ["entropy", "kl", "observed_information", "project"]
