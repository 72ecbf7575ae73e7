"""Every long call understands `memory_limit`: too small a one is refused with both sizes, one that suffices changes no result."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.learning.gradient import gradient
from suffice.learning.undirected.rbm import rbm
from suffice.recipes.cross_validation import cross_validate
from suffice.recipes.latent.factors import factors
from suffice.recipes.latent.hmm import hmm
from suffice.recipes.latent.mixture import mixture
from suffice.recipes.resampling import bootstrap
from suffice.recipes.structural.structural_em import structural_em
from suffice.structure.order_mcmc import order_mcmc
from tests.oracles import random_rows

RNG = np.random.default_rng(0)
COMPLETE = {n: random_rows(3, 80)[n] for n in ("u", "w")}
NUMBERS = {n: RNG.normal(size=60) for n in ("x", "y", "z")}
GAPS = {n: [None if i % 9 == k else v for i, v in enumerate(x)] for k, (n, x) in enumerate(COMPLETE.items())}
MIXED = {**GAPS, "x": [None if i % 7 == 0 else float(i % 5) + 0.1 * (i % 3) for i in range(80)]}
STEPS = sf.sequences({"y": ["a", "b", "b", "c"] * 15})
WORDS = sf.sequences({"t": ["n", "v", "n", "v"] * 5, "s": ["1"] * 20, "w": ["dog", "runs", "cat", "sits"] * 5}, by="s")
CHAIN = sf.LinearChain("t", [sf.Window("w", [0])])
K = {"starts": 2, "max_iter": 5, "tol": 0.0}

CALLS: dict[str, Callable[..., Any]] = {
    "em": lambda **limit: sf.em("u -> w", GAPS, **limit).model["w"].probs,
    "em of numbers": lambda **limit: sf.em("u -> w; u -> x", MIXED, **limit).model["x"].intercept,
    "em of sequences": lambda **limit: sf.em("h[-1] -> h -> y", STEPS, hidden={"h": ["0", "1"]}, **K, **limit).model["y"].probs,
    "gradient": lambda **limit: gradient("u -> w", GAPS, **limit).model["w"].probs,
    "fit": lambda **limit: sf.fit("u -> w", COMPLETE, **limit)["w"].probs,
    "fit with gaps": lambda **limit: sf.fit("u -> w", GAPS, **limit)["w"].probs,
    "fit of a graph": lambda **limit: sf.fit("u -- w", COMPLETE, **limit).log_prob(COMPLETE),
    "fit of sequences": lambda **limit: sf.fit("y[-1] -> y", STEPS, **limit)["y"].probs,
    "fit of labels": lambda **limit: sf.fit(CHAIN, WORDS, penalty=sf.objectives.L2(1.0), max_iter=5, **limit).run.objective,
    "structural_em": lambda **limit: structural_em(GAPS, **limit).score,
    "learn": lambda **limit: sf.learn(GAPS, **limit)["w"].probs,
    "bootstrap": lambda **limit: bootstrap(GAPS, n=2, **limit).strength("u", "w"),
    "cross_validate": lambda **limit: cross_validate(GAPS, folds=2, **limit).log_likelihood,
    "mixture": lambda **limit: mixture(NUMBERS, 2, **K, **limit).means,
    "mixture of states": lambda **limit: mixture(COMPLETE, 2, **K, **limit).weights,
    "hmm": lambda **limit: hmm(STEPS, 2, **K, **limit).transition,
    "factors": lambda **limit: factors(NUMBERS, **limit).loadings,
    "rbm": lambda **limit: rbm(COMPLETE, k=2, epochs=2, **limit).model.weights,
    "search": lambda **limit: sf.search(COMPLETE, **limit).score,
    "order_mcmc": lambda **limit: order_mcmc(COMPLETE, samples=20, **limit).edges,
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore::suffice.SufficeNote")
def test_too_little_is_refused_with_both_sizes_and_enough_changes_nothing(name: str) -> None:
    call = CALLS[name]
    with pytest.raises(sf.SufficeError, match=r"would take about [\d.]+ \w+.*may take 8 B.*\(memory_limit\)"):
        call(memory_limit=8)
    np.testing.assert_array_equal(call(memory_limit="64 MiB"), call())


MANY = {n: np.where(RNG.random(200) < 0.3, None, RNG.choice(["a", "b"], 200)) for n in "abcdef"}
CALLS["em of many gaps"] = lambda **limit: sf.em("a -> b -> c -> d -> e -> f", MANY, **limit).model["f"].probs
BOUNDED = {"em of many gaps": 1100, "em of numbers": 800, "em of sequences": 600, "hmm": 600, "mixture of states": 600}


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.filterwarnings("ignore::suffice.SufficeNote")
def test_what_can_be_done_without_is_not_held(name: str) -> None:
    """With room for the parameters alone rows are passed over again, to the same result."""
    call = CALLS[name]
    np.testing.assert_allclose(call(memory_limit=BOUNDED[name]), call(), rtol=1e-9)


def test_rows_that_are_not_held_are_passed_over_in_each_iteration() -> None:
    for limit, passes in ((1100, 1), ("1 MiB", 0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sf.SufficeNote)
            plan = sf.em("a -> b -> c -> d -> e -> f", MANY, memory_limit=limit, dry_run=True)
        assert plan.passes_an_iteration == passes


def test_the_command_line_takes_it(run: Any, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("u,w\n" + "a,p\nb,\n,q\na,q\n" * 20)
    for graph in ("u -> w", "u -- w"):
        data = str(tmp_path / "rows.csv")
        fit = ("fit", graph, data, "-o", str(tmp_path / "m.json"))
        if graph == "u -- w":
            (tmp_path / "rows.csv").write_text("u,w\n" + "a,p\nb,q\nb,p\na,q\n" * 20)
        code, _, err = run(*fit, "--memory-limit", "8")
        assert code == 1
        assert "may take 8 B" in err
        assert "(--memory-limit)" in err
        assert run(*fit, "--memory-limit", "2GB")[0] == 0
