"""Chains: what is said about sequences beside their template. How they begin (`first=`), what an empty step is (`gaps=`), how
a variable some steps back is called.
"""

from suffice.engines.sequences.sequences import Missing, Refuse, Sequences, sequences
from suffice.graphs import Template, lag
from suffice.incomplete.first_slices import Diffuse, Free, Given, Stationary
from suffice.models.chain import Chain
from suffice.recipes.latent.hmm import hmm

__all__ = [
    "Chain", "Diffuse", "Free", "Given", "Missing", "Refuse", "Sequences", "Stationary", "Template", "hmm", "lag",
    "sequences",
]  # fmt: skip
