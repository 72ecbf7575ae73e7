"""Tests of independence: one by itself, `independence_test`, or as `test=` of `PC` and `MMHC`."""

from suffice.structure.independence import (
    ChiSquared,
    FisherZ,
    GSquared,
    IndependenceTest,
    LikelihoodRatio,
    MutualInformation,
    independence_test,
)

__all__ = ["ChiSquared", "FisherZ", "GSquared", "IndependenceTest", "LikelihoodRatio", "MutualInformation", "independence_test"]
