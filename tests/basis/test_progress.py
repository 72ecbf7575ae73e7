"""`progress=` as a function: it sees each step, and stops the run."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import pytest

import suffice as sf
from suffice.basis.iteration import TraceStep

ROWS = sf.load("asia").sample(300, seed=0)
GAPPY = {"a": ["u", "v", None, "u"] * 20, "b": ["x", "y", "y", None] * 20}
HIDDEN = [sf.Finite("h", ["0", "1"])]
NEAR = sf.constraints.Adjacent(("asia", "smoke"))
LEARN = {"learned": sf.learn}
PSEUDO = sf.PseudoLikelihood()


def test_a_search_tells_each_improvement() -> None:
    seen: list[TraceStep] = []
    found = sf.search(ROWS, method=sf.HillClimb(), progress=seen.append)
    assert [s for s in seen if s in found.trace] == list(found.trace)
    assert found.finished


def test_a_search_stops_with_the_best_so_far() -> None:
    found = sf.search(ROWS, method=sf.HillClimb(), progress=lambda step: step.what.startswith("add"))
    assert not found.finished
    assert len(found.dag.edges) == 1


def test_em_tells_objectives_and_stops() -> None:
    seen: list[TraceStep] = []
    run = sf.em("a -> b", GAPPY, progress=seen.append)
    assert [s.score for s in seen] == [i.objective for i in run.trace][: len(seen)]
    short = sf.em("h -> a; h -> b", GAPPY, hidden=HIDDEN, starts=5, progress=lambda step: "start 2" in step.what)
    assert len(short.optima) == 2


def test_resampling_and_folds_stop() -> None:
    method = sf.HillClimb()
    assert sf.bootstrap(ROWS, method, n=50, progress=lambda step: "replicate 4 " in step.what).n_done == 3
    assert len(sf.cross_validate(ROWS, method, folds=5, progress=lambda step: "fold 4 " in step.what).folds) == 3
    assert len(sf.cross_validate(ROWS, method, folds=5, progress=lambda step: "fold 2 " in step.what).folds) == 1


def test_a_search_has_something_to_return_from_its_start_on() -> None:
    assert not sf.search(ROWS, progress=lambda step: True).finished


@pytest.mark.parametrize("step", [1, 2, 9])
def test_who_goes_on_stopping_has_the_best_so_far(step: int) -> None:
    seen: list[TraceStep] = []

    def stop(new: TraceStep) -> bool:
        seen.append(new)
        return len(seen) >= step

    for more in ({}, {"prior": sf.BDeu(1)}, {"hidden": HIDDEN, "starts": 2}):
        seen.clear()
        assert not sf.structural_em(GAPPY, progress=stop, **more).finished
    seen.clear()
    assert sf.learn(GAPPY, progress=stop).dag.nodes == ("a", "b")


NOTHING_YET: dict[str, tuple[str, Any]] = {
    "ges": ("any graph was found", lambda **how: sf.search(ROWS, method=sf.methods.GES(), **how)),
    "pc": ("any graph was found", lambda **how: sf.search(ROWS, method=sf.PC(), **how)),
    "mmhc": ("any graph was found", lambda **how: sf.search(ROWS, method=sf.methods.MMHC(), **how)),
    "tree": ("any graph was found", lambda **how: sf.search(ROWS, method=sf.methods.ChowLiu(), **how)),
    "undirected": ("any graph was found", lambda **how: sf.search(ROWS, method=sf.Decomposable(), **how)),
    "regressions": ("any graph was found", lambda **how: sf.search(ROWS, families={"lung": sf.Logistic()}, **how)),
    "parts": ("any graph was found", lambda **how: sf.search(ROWS, method=sf.methods.GES(), constraints=NEAR, **how)),
    "structural": ("any network was found", lambda **how: sf.structural_em(GAPPY, method=sf.methods.TAN("a"), **how)),
    "orders": ("there were enough samples", lambda **how: sf.methods.order_mcmc(ROWS, **how)),
    "gradient": ("the first iteration", lambda **how: sf.gradient("a -> b", GAPPY, **how)),
    "folds": ("any fold was done", lambda **how: sf.cross_validate(ROWS, folds=3, **how)),
    "fits": ("any fold was done", lambda **how: sf.cross_validate(ROWS, method=LEARN, target="lung", folds=3, **how)),
    "estimate": ("the estimate by PseudoLikelihood", lambda **how: sf.fit("lung -- xray", ROWS, objective=PSEUDO, **how)),
}


@pytest.mark.parametrize("name", NOTHING_YET)
def test_with_nothing_to_return_a_sentence_says_so(name: str) -> None:
    lacking, learn = NOTHING_YET[name]
    for once in (True, False):
        stops = iter([True] if once else repeat(True))
        with pytest.raises(sf.SufficeError, match=f"the run was stopped before {lacking}"):
            learn(progress=lambda step, stops=stops: next(stops, False))


def test_a_part_of_a_search_that_is_stopped_knows_why() -> None:
    with pytest.raises(sf.SufficeError, match="the run was stopped before any graph was found"):
        sf.search(ROWS, method=sf.Exact(), constraints=NEAR, progress=lambda step: step.what == "all subsets")


@pytest.mark.parametrize("name", NOTHING_YET)
def test_ctrl_c_with_nothing_to_return_stays_ctrl_c(name: str) -> None:
    def interrupt(step: TraceStep) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        NOTHING_YET[name][1](progress=interrupt)
