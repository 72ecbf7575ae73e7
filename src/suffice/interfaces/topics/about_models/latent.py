"""Latent variables: models with a hidden class, state or factors, and how numbers vary within a class (`covariance=`);
`discriminant` is a mixture whose class is known.
"""

from suffice.learning.latent.mixture_setup import Diagonal, Full, Spherical, Tied
from suffice.recipes.classifiers import discriminant
from suffice.recipes.latent.factors import factors
from suffice.recipes.latent.hmm import hmm
from suffice.recipes.latent.mixture import mixture

__all__ = ["Diagonal", "Full", "Spherical", "Tied", "discriminant", "factors", "hmm", "mixture"]
