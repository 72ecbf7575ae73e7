"""Hidden variables passed on factor by factor: the same as one joint state, and what no joint state can do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import FitError, TooLarge
from suffice.incomplete.chains import factored_rows
from suffice.learning.chains.chain_problem import chain_problem_of
from suffice.numerics.inference.chains.factored import factor_steps
from suffice.numerics.inference.chains.factored.slice_program import SliceProgram

COUPLED = "a[-1] -> a; a[-1] -> b; b[-1] -> b; b[-2] -> c; c[-1] -> c; a -> m -> y; b -> m; b -> z; c[-1] -> z; c -> w; u -> c"
"""Three chains, one of them of order 2 and driven by u; m is hidden within a step; w is a number."""
HIDDEN = ["a", "b", "c", "m"]
LENGTHS, WEIGHTS = (1, 2, 7, 9, 9, 12), (1.0, 2.0, 0.0, 1.0, 3.0, 1.0)
SIZES = {"a": 3, "b": 2, "c": 2, "m": 3, "u": 2, "y": 4, "z": 3}


def coupled(seed: int = 0) -> sf.Chain:
    rng = np.random.default_rng(seed)
    states = {n: sf.Finite(n, [f"{n}{i}" for i in range(k)]) for n, k in SIZES.items()}
    template = sf.Template(COUPLED)
    keys = {n: (n, template.parents(n)) for n in template.nodes}
    keys |= {template.parameter_name(n, t): (n, template.parents_at(n, t)) for n, t in template.first_nodes}
    cpds: dict[str, Any] = {}
    for key, (name, parents) in keys.items():
        shape = [SIZES[p.partition("[")[0]] for p in parents]
        if name == "w":
            cpds[key] = sf.Gaussian(2 * rng.normal(size=shape), {}, rng.gamma(2.0, size=shape) + 0.1)
        else:
            table = rng.gamma(1.0, size=[*shape, SIZES[name]]) + 0.02
            cpds[key] = table / table.sum(-1, keepdims=True)
    return sf.Chain(template, cpds, states)


def with_gaps(chain: sf.Chain, seed: int = 1) -> sf.chains.Sequences:
    """Sequences of unlike lengths and weights with missing cells, and some labels of `a`."""
    rng = np.random.default_rng(seed)
    table: dict[str, list[Any]] = {n: [] for n in ("id", "a", "u", "w", "y", "z")}
    share = {"id": 0.0, "a": 0.8, "u": 0.0, "w": 0.2, "y": 0.2, "z": 0.2}
    for i, n in enumerate(LENGTHS):
        drawn = chain.sample(1, length=n, seed=seed + i).to_pylist()
        for name, cells in table.items():
            cells += [None if rng.random() < share[name] else {**row, "id": i}[name] for row in drawn]
    variables = {n: v for n, v in chain.variables.items() if n in table}
    return sf.sequences(table, by="id", variables=variables, weights=np.repeat(WEIGHTS, LENGTHS))


def factored(patch: pytest.MonkeyPatch, *, always: bool) -> None:
    patch.setattr(factored_rows, "FIXED", 1 if always else 2**62)
    patch.setattr(factored_rows, "DEARER", 0)


def said(chain: sf.Chain, s: sf.chains.Sequences) -> dict[str, Any]:
    """All that a chain says of sequences, as arrays."""
    frames = {
        "filter": chain.filter(s),
        "smooth": chain.smooth(s),
        "forecast": chain.forecast(s, 2, given={"u": ["u0", "u1"]}),
    }
    result = {f"{name} {c}": np.asarray(f[c]) for name, f in frames.items() for c in dict(f) if c not in ("id", "step")}
    return {**result, "log_prob": chain.log_prob(s), "best": chain.decode(s).log_prob}


def e_step(chain: sf.Chain, s: sf.chains.Sequences, **how: Any) -> tuple[Any, Any]:
    hidden = [chain.variables[n] for n in HIDDEN]
    problem = chain_problem_of(chain.template, s, hidden=hidden, **how)
    return problem, problem.expect(problem.parameters({n: chain[n] for n in chain}))


def moments(statistic: Any) -> list[Any]:
    groups = statistic.moments["w"]
    return [groups.spread.weight, groups.spread.mean] if hasattr(groups, "spread") else []


@pytest.mark.parametrize("seed", range(3))
def test_factor_by_factor_is_the_joint_state(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = coupled(seed)
    s, hidden = with_gaps(chain, seed + 10), [chain.variables[n] for n in HIDDEN]
    found = []
    for always in (False, True):
        factored(monkeypatch, always=always)
        problem, e = e_step(chain, s)
        assert (problem.components.layout.plan is not None) == always
        run = sf.em(chain.template, s, hidden=hidden, start=chain, max_iter=4, tol=0)
        trace = np.array([t.objective for t in run.trace])
        found.append({**said(chain, s), "log L": e.log_likelihood, "cells": e.statistic.cells, "trace": trace})
        found[-1] |= {f"w {i}": x for i, x in enumerate(moments(e.statistic))}
    joint, apart = found
    assert "w 1" in joint
    for name in joint:
        np.testing.assert_allclose(apart[name], joint[name], rtol=1e-10, atol=1e-10, err_msg=name)


def test_little_room_and_single_lanes_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are run again from marks, and marks within marks."""
    chain = coupled()
    s = with_gaps(chain)
    factored(monkeypatch, always=True)
    whole = [said(chain, s), e_step(chain, s)[1].statistic.cells, chain.sample(2, seed=1, given=s)]
    monkeypatch.setattr(factor_steps, "ROOM", 1)
    monkeypatch.setattr(factor_steps, "LANES", 2)
    parts = [said(chain, s), e_step(chain, s)[1].statistic.cells, chain.sample(2, seed=1, given=s)]
    for name in whole[0]:
        np.testing.assert_allclose(parts[0][name], whole[0][name], rtol=1e-12, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(parts[1], whole[1], rtol=1e-12, atol=1e-12)
    for one, other in zip(whole[2], parts[2], strict=True):
        assert all(np.array_equal(one[n], other[n]) for n in HIDDEN)


def test_draws_of_paths_are_of_the_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = coupled()
    table = {"id": np.repeat(np.arange(2000), 3), "u": ["u0"] * 6000, "y": ["y1", "y2", "y1"] * 2000}
    same = sf.sequences(table, by="id", variables={n: chain.variables[n] for n in "uy"})
    factored(monkeypatch, always=True)
    [drawn], smoothed = chain.sample(1, seed=5, given=same), chain.smooth(same)
    for name in HIDDEN:
        cells = np.array(drawn[name]).reshape(2000, 3)
        for state in chain.variables[name].states:
            share, p = (cells == state).mean(axis=0), np.asarray(smoothed[f"{name}={state}"])[:3]
            assert (np.abs(share - p) < 5 * np.sqrt(p * (1 - p) / len(cells)) + 1e-9).all()


def chains(m: int, k: int, *, far: float = 2.0, seed: int = 0) -> tuple[sf.Chain, list[Any]]:
    """m chains of k states, each with a number of its own, and a symbol that two of them have in common."""
    rng = np.random.default_rng(seed)
    hidden = [sf.Finite(f"h{i}", [str(j) for j in range(k)]) for i in range(m)]
    text = "; ".join(f"h{i}[-1] -> h{i} -> x{i}" for i in range(m)) + "; h0 -> y; h1 -> y"
    y = sf.Finite("y", ["s", "t", "v"])
    cpds: dict[str, Any] = {"y": rng.dirichlet(np.ones(3), (k, k))}
    for i in range(m):
        cpds[f"h{i}"] = 0.8 * np.eye(k) + 0.2 * rng.dirichlet(np.ones(k), k)
        cpds[f"h{i}[0]"] = np.full(k, 1 / k)
        cpds[f"x{i}"] = sf.Gaussian(far * np.arange(k), {}, np.ones(k))
    return sf.Chain(text, cpds, [*hidden, y]), hidden


def shown(chain: sf.Chain, n: int, length: int) -> sf.chains.Sequences:
    table = chain.sample(n, length=length, seed=3)
    names = [n for n in chain.variables if not n.startswith("h")]
    return sf.sequences(
        table.select(["sequence", "step", *names]), by="sequence", order="step", variables={"y": chain.variables["y"]}
    )


@pytest.mark.parametrize(("m", "k"), [(7, 4), (13, 2)])
def test_more_joint_states_than_a_matrix_could_have(m: int, k: int) -> None:
    """16,384 and 8,192 joint states: EM climbs, and the first two chains are as they are alone, since no other bears on them."""
    chain, hidden = chains(m, k)
    s = shown(chain, 3, 6)
    run = sf.em(chain.template, s, hidden=hidden, start=chain, max_iter=3, tol=0)
    assert (np.diff([t.objective for t in run.trace]) > 0).all()
    few, _ = chains(2, k)
    alone = sf.Chain(few.template, {n: chain[n] for n in few}, [few.variables[n] for n in few.variables])
    less = sf.sequences(
        s.source.select(["sequence", "step", "x0", "x1", "y"]), by="sequence", order="step", variables={"y": chain.variables["y"]}
    )
    a, b = chain.smooth(s), alone.smooth(less)
    for column in b.column_names:
        np.testing.assert_allclose(a[column], b[column], rtol=1e-10, atol=1e-12)
    assert chain.decode(s)["h0"].to_pylist() == alone.decode(less)["h0"].to_pylist()
    with pytest.raises(TooLarge, match="enumerated for more than one best path"):
        chain.decode(s, best=2)


def test_states_far_apart_are_done_in_logarithms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Likelihoods of 1e-4000 beside 1: what one step rules out, others may bring back."""
    chain, hidden = chains(3, 2, far=140.0)
    rows = {f"x{i}": [0.0, 140.0, 70.1, 0.0, 69.0, 71.0, 140.0, 0.0] for i in range(3)}
    s = sf.sequences({**rows, "y": ["s", "t", None, "s", "v", "v", "t", "t"]}, variables={"y": chain.variables["y"]})
    found = []
    for always in (False, True):
        factored(monkeypatch, always=always)
        problem = chain_problem_of(chain.template, s, hidden=hidden)
        cells = problem.expect(problem.parameters({n: chain[n] for n in chain})).statistic.cells
        smoothed = chain.smooth(s)
        found.append((chain.log_prob(s), chain.decode(s).log_prob, cells, np.array([smoothed[c] for c in smoothed])))
    for joint, apart in zip(*found, strict=True):
        np.testing.assert_allclose(apart, joint, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("always", [False, True])
def test_an_impossible_sequence_is_told_by_its_step(always: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that is not the first of its block."""
    factored(monkeypatch, always=always)
    chain, hidden = chains(2, 2)
    cpds = {**{n: chain[n] for n in chain}, "y": [[[1, 0, 0], [1, 0, 0]], [[1, 0, 0], [0.5, 0.5, 0]]]}
    chain = sf.Chain(chain.template, cpds, list(chain.variables.values()))
    table = {"id": [0, 0, 0, 1, 1, 1], "x0": [0.1, 0.2] * 3, "x1": [0.2, 0.3] * 3, "y": ["s", "s", "s", "s", "v", "s"]}
    s = sf.sequences(table, by="id", variables={n: v for n, v in chain.variables.items() if n in table})
    with pytest.raises(sf.SufficeError, match=r"sequence '1' is impossible .* up to step 2 has"):
        chain.filter(s)
    problem = chain_problem_of(chain.template, s, hidden=hidden)
    with pytest.raises(FitError, match=r"sequence '1', step 2 \(row 5\) is impossible"):
        problem.expect(problem.parameters({n: chain[n] for n in chain}))


def test_sizes_decide_which_way_is_taken() -> None:
    """5 chains of 4 states: 5 · 4⁶ products and a few, not 4¹⁰; 4 chains of 4 states are one joint state."""
    for m, taken in ((4, False), (5, True)):
        chain, hidden = chains(m, 4)
        layout = chain_problem_of(chain.template, shown(chain, 1, 4), hidden=hidden).components.layout
        assert (layout.plan is not None) == taken
    assert layout.plan.program.cost < 5 * 4**6 + 8 * 4**5
    within = SliceProgram.of((2,) * 12, (1,), (0,), ((1, 0), *((i - 1 if i > 2 else 0, i) for i in range(2, 12))))
    assert (within.widest, within.largest) == (4, 4)  # a tree within a step, of 2¹¹ joint states
