"""Single entries of a Gaussian that are known, and stay as they are at the start: its intercept, coefficients, or variance.

    y = a + Σ b x + e       the M-step is the least squares of what is free: with all of b known, a is the mean of y − Σ b x;
                            with a known the line goes through (0, a), a being that of the columns as they are

In scaled columns, x' = (x − c)/s, the intercept of the columns as they are stays the same if a' − Σ b' c/s does.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.basis.arrays import Array
from suffice.engines.gather import Groups
from suffice.errors import FitError, listing, nearest
from suffice.errors.remedies import Remedy
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.incomplete.components import Line, NodeFamily
from suffice.incomplete.numbers.units import Units, no_groups
from suffice.learning.incomplete.objective import VANISHED, refuse_collapse, regression_of

ENTRIES = ("intercept", "coefficients", "variance")


@dataclass(frozen=True)
class HeldEntries:
    """Which entries of a Gaussian are known: its intercept, the coefficients of some real parents (by number), its variance.

    >>> HeldEntries(True, (0,), False)
    HeldEntries(intercept=True, coefficients=(0,), variance=False)
    """

    intercept: bool
    coefficients: tuple[int, ...]
    variance: bool

    @staticmethod
    def of(node: NodeFamily, names: Iterable[str]) -> HeldEntries:
        """The entries of these names: those of the arrays, or real parents, whose coefficients are meant."""
        wanted, parents = set(names), node.reals[:-1]
        known = [*ENTRIES, *parents]
        for name in sorted(wanted - set(known)):
            raise FitError(
                f"fixed has {name!r} of {node.name!r}, which is no entry of it: {listing(known)}{nearest(str(name), known)}"
            )
        all_of_them = "coefficients" in wanted
        some = tuple(i for i, p in enumerate(parents) if all_of_them or p in wanted)
        return HeldEntries("intercept" in wanted, some, "variance" in wanted)

    def names(self, node: NodeFamily) -> tuple[str, ...]:
        """The entries by name, coefficients as those of their parents."""
        own = (("intercept", self.intercept), *((node.reals[i], True) for i in self.coefficients), ("variance", self.variance))
        return tuple(name for name, known in own if known)

    def whole(self, node: NodeFamily) -> bool:
        """Whether nothing is left to learn."""
        return self.intercept and self.variance and len(self.coefficients) == len(node.reals) - 1

    def put(self, cpd: ConditionalGaussian, start: ConditionalGaussian, ratio: Array) -> ConditionalGaussian:
        """A distribution with the known entries of the start; `ratio` is c/s of each real parent."""
        line, old = Line.of(cpd), Line.of(start)
        b = line.coefficients.copy()
        b[:, list(self.coefficients)] = old.coefficients[:, list(self.coefficients)]
        a = old.intercept + (b - old.coefficients) @ ratio if self.intercept else line.intercept
        return Line(a, b, old.variance if self.variance else line.variance).in_place_of(cpd)

    def estimate(
        self,
        node: NodeFamily,
        groups: Groups | None,
        old: ConditionalGaussian,
        start: ConditionalGaussian,
        ratio: Array,
        variance: float,
    ) -> ConditionalGaussian:
        """The distribution of largest likelihood among those with the known entries; a configuration without weight keeps the
        `old` one. `variance` is that of the child's observed cells."""
        groups = no_groups(len(node.reals)) if groups is None else groups
        a, b, v = (part.copy() for part in Line.of(self.put(old, start, ratio)))
        known, spread = Line.of(start), groups.spread
        free = [i for i in range(len(node.reals) - 1) if i not in self.coefficients]
        least = VANISHED * min(1.0, float(spread.weight.sum()))
        for key, N, mean, scatter in zip(groups.keys, spread.weight, spread.mean, spread.scatter, strict=True):
            if least > N:
                continue
            fixed = np.where(np.isin(np.arange(len(ratio)), free), 0.0, known.coefficients[key])
            L = np.vstack([np.eye(len(mean))[free], np.append(-fixed, 1.0)])
            S, m = L @ scatter @ L.T, L @ mean
            if self.intercept:
                m += np.append(ratio[free], (known.coefficients[key] * ratio)[free].sum() - known.intercept[key])
                S = S + N * np.outer(m, m)
            r = regression_of(node, int(key), S, [node.reals[i] for i in free])
            if not self.variance:
                refuse_collapse(node, int(key), r, N, variance, S)
                v[key] = r.residual / N
            b[key] = fixed
            b[key, free] = r.coefficients
            line = known.intercept[key] + (b[key] - known.coefficients[key]) @ ratio
            a[key] = line if self.intercept else mean[-1] - b[key] @ mean[:-1]
        return Line(a, b, v).in_place_of(old)


def ratios(node: NodeFamily, units: Units) -> Array:
    """c/s of each real parent."""
    return np.array([units.centre[r] / units.scale[r] for r in node.reals[:-1]])


def read_fixed(
    fixed: Any, nodes: Mapping[str, NodeFamily], known: Iterable[str]
) -> tuple[tuple[str, ...], dict[str, HeldEntries]]:
    """The nodes that are known as a whole, and those of which only some entries are."""
    if not isinstance(fixed, (Iterable, Mapping)):
        raise FitError(f"fixed names nodes, ['state'], or entries of them, {{'level': ['intercept']}}, not {fixed!r}")
    if not isinstance(fixed, Mapping):
        return ((fixed,) if isinstance(fixed, str) else tuple(fixed)), {}
    whole, entries = [], {}
    for name, said in fixed.items():
        node = nodes.get(name)
        if node is None:
            raise FitError(f"fixed names {name!r}, which has no parameters here{nearest(str(name), list(known))}")
        if said is True:
            whole.append(name)
            continue
        if not node.normal or node.regression:
            raise FitError(
                f"fixed names single entries of {name!r}, and only those of Gaussians can be: "
                f"{Remedy(f'{{{name!r}: True}}', f'--fixed {shlex.quote(name)}')} is all of it"
            )
        held = HeldEntries.of(node, [said] if isinstance(said, str) else said)
        if held.whole(node):
            whole.append(name)
        else:
            entries[name] = held
    return tuple(whole), entries
