"""Tests of finite and real variables together, of the moments within configurations of the finite ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array
from suffice.statistics import Moments
from suffice.structure.scoring.hybrid_scores import ConfigurationMoments

Ints = npt.NDArray[Any]


class Strata(NamedTuple):
    """Groups of rows, those that agree in the finite variables that are given one after the other: see `mixed_tests`."""

    groups: tuple[Array, Array, Array, Ints, Ints, Ints]
    sizes: tuple[int, ...]
    """The numbers of states of those of the pair that are finite."""

    @staticmethod
    def of(moments: ConfigurationMoments, sizes: Sequence[int], pair: Sequence[int]) -> Strata:
        """From moments within configurations of finite variables with these numbers of states; the pair's by place."""
        codes = (
            np.array(np.unravel_index(moments.keys, tuple(sizes))) if len(sizes) else np.zeros((0, len(moments.keys)), np.int64)
        )
        given = [i for i in range(len(sizes)) if i not in pair]
        stratum = np.zeros(len(moments.keys), np.int64)
        for i in given:
            stratum = stratum * sizes[i] + codes[i]
        order = np.argsort(stratum, kind="stable")
        stratum = stratum[order]
        first = np.concatenate([[0], np.flatnonzero(np.diff(stratum)) + 1, [len(stratum)]]).astype(np.int64)
        states = [np.ascontiguousarray(codes[i][order]) for i in pair] + [np.zeros(len(order), np.int64)] * (2 - len(pair))
        arrays = (np.ascontiguousarray(a[order]) for a in (moments.weight, moments.mean, moments.scatter))
        return Strata((*arrays, first, *states), tuple(sizes[i] for i in pair))  # type: ignore[arg-type]

    @staticmethod
    def of_moments(moments: Moments, pair: Sequence[str]) -> Strata:
        """From moments that were gathered, in units of the deviations of all rows."""
        whole = moments.marginal((), moments.reals)
        deviation = (
            np.sqrt(np.diag(whole.scatter[0]) / max(whole.total, 1.0)) if len(whole.scatter) else np.zeros(len(moments.reals))
        )
        scale = np.where(deviation > 0, deviation, 1.0)
        centre = whole.mean[0] if len(whole.mean) else np.zeros(len(moments.reals))
        about = ConfigurationMoments.about_own_means(moments, centre, scale)
        return Strata.of(about, [v.n_states for v in moments.variables], [moments.names.index(n) for n in pair])

    def answers(self, members: npt.NDArray[np.int32]) -> Array:
        """Statistic, degrees of freedom and log p of tests by the places of their numbers: the given, then the pair's."""
        from suffice.kernels.search.mixed_tests import ratio_tests, state_tests

        result = np.zeros((len(members), 3))
        members = np.ascontiguousarray(members, np.int32)
        if len(self.sizes) == 2:
            state_tests(self.groups, members, *self.sizes, result)
        else:
            ratio_tests(self.groups, members, not self.sizes, result)
        return result
