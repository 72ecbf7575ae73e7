"""Estimators, adapters for scikit-learn: the room itself, by its public name."""

import sys

from suffice.interfaces import estimators

sys.modules[__name__] = estimators
