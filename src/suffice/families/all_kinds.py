"""Every kind of distribution, regression and prior of this room: once this is imported, `CPDS`, `REGRESSIONS` and `PRIORS` know
them all, and files that hold them can be read. A new file of one is named here."""

from __future__ import annotations

from suffice.families import categorical as categorical
from suffice.families import conditional_gaussian as conditional_gaussian
from suffice.families import conjugate as conjugate
from suffice.families import exponential_cpd as exponential_cpd
from suffice.families import hierarchical as hierarchical
from suffice.families import known_variance as known_variance
from suffice.families import logistic as logistic
from suffice.families import logistic_normal as logistic_normal
from suffice.families import number_priors as number_priors
from suffice.families import ordinal as ordinal
from suffice.families import poisson as poisson
from suffice.families import priors as priors
from suffice.families import responses as responses
