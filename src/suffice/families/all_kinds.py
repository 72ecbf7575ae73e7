"""Every kind of distribution, regression and prior of this room: once this is imported, `CPDS`, `REGRESSIONS` and `PRIORS` know
them all, and files that hold them can be read. A new file of one is named here."""

from __future__ import annotations

from suffice.families import categorical as categorical
from suffice.families import conditional_gaussian as conditional_gaussian
from suffice.families import poisson as poisson
from suffice.families.chosen import exponential_cpd as exponential_cpd
from suffice.families.hierarchical import hierarchical as hierarchical
from suffice.families.hierarchical import logistic_normal as logistic_normal
from suffice.families.priors import conjugate as conjugate
from suffice.families.priors import known_variance as known_variance
from suffice.families.priors import number_priors as number_priors
from suffice.families.priors import priors as priors
from suffice.families.regressions import logistic as logistic
from suffice.families.regressions import ordinal as ordinal
from suffice.families.regressions import responses as responses
