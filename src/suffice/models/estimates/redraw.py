"""Networks at draws of their parameters: what `impute` fills each of its tables with, so that multiple imputation is proper.

Each family is drawn from its own posterior (Dirichlet, normal-inverse-gamma, gamma, the normal one of a regression), what was
learned from incomplete rows together, by the covariance of its coordinates (`parameter_covariance`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from suffice.errors import FitError, SufficeError, listing, note
from suffice.errors.remedies import BDEU, name_of
from suffice.models.parts.network_parts import NetworkParts, SomeNetwork


def networks_at_draws(bn: SomeNetwork, n: int, seed: Any, *, every: bool = False) -> list[SomeNetwork]:
    """n networks whose parameters are drawn. Nodes that nobody fitted, or `do` set, are known: they stay.

    Where the parameters of a node that was fitted have no posterior they stay, too, with a note; with `every` that is refused.

    >>> from suffice import Dirichlet, fit
    >>> bn = fit("x", {"x": ["a", "b", "b"]}, prior=Dirichlet(1))
    >>> [net["x"].probs.round(2).tolist() for net in networks_at_draws(bn, 2, seed=0)]
    [[0.52, 0.48], [0.42, 0.58]]
    """
    held, why = _without_posterior(bn)
    if held and every:
        raise FitError(f"the parameters of {listing(held)} cannot be drawn: {why}; or leave {name_of('redraw')} out")
    if held and bn.is_fitted:
        note(f"the parameters of {listing(held)} are held at their estimates, and intervals will be too narrow: {why}")
    seeds = np.random.SeedSequence(seed)
    drawn = _draw_cpds(bn, [name for name in bn if name not in held], n, seeds)
    every_draw = ({name: drawn[name][i] if name in drawn else bn[name] for name in bn} for i in range(n))
    return [bn.with_cpds(cpds) for cpds in every_draw]


def _without_posterior(bn: NetworkParts) -> tuple[list[str], str]:
    """The nodes whose parameters have no posterior, and why."""
    why = f"they have no posterior; fit them with a prior, for instance {BDEU}"
    try:
        known = bn.parameter_covariance
    except SufficeError as error:
        known, why = None, error.said
    joint = () if known is None else known.charts.keys() - known.unidentified
    lacking = [n for n in bn if n not in bn.intervened and n not in joint and not bn[n].has_posterior]
    held = [n for n in lacking if not (bn[n].is_regression and bn[n].has_covariance)]
    if bn.incomplete and known is None and held:
        why = f"{why}; after EM they are drawn by the observed information, which this network does not have"
    return held, why


def _draw_cpds(bn: NetworkParts, names: Sequence[str], n: int, seeds: np.random.SeedSequence) -> dict[str, list[Any]]:
    """n draws of each of these distributions; nodes that share their parameters have the same."""
    joint = bn.covariance_beside_posteriors(names)
    result: dict[str, list[Any]] = {}
    if joint is not None:
        lines = joint.draw_parameters(n, np.random.default_rng(seeds.spawn(1)[0]))
        result = {name: chart.with_lines(lines[name]) for name, chart in joint.charts.items()}
    first = {node: tie.nodes[0] for tie in bn.ties for node in tie.nodes}
    own = dict(zip(bn, seeds.spawn(len(bn)), strict=True))
    for name in names:
        if name not in result and name not in bn.intervened:
            result[name] = bn[name].redraw(n, np.random.default_rng(own[first.get(name, name)]))
    return result
