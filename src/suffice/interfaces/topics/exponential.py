"""Exponential families with their statistics and conjugate priors: the room itself, by its public name."""

import sys

from suffice.numerics import exponential

sys.modules[__name__] = exponential
