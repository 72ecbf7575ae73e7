"""`progress=` as a function: it sees each step, and stops the run."""

from __future__ import annotations

from typing import Any

import pytest

import suffice as sf
from suffice.basis.iteration import TraceStep

ROWS = sf.load("asia").sample(300, seed=0)
GAPPY = {"a": ["u", "v", None, "u"] * 20, "b": ["x", "y", "y", None] * 20}
HIDDEN = [sf.Finite("h", ["0", "1"])]


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


def test_a_search_has_something_to_return_from_its_start_on() -> None:
    assert not sf.search(ROWS, progress=lambda step: True).finished


@pytest.mark.parametrize("learn", [sf.methods.order_mcmc, sf.structural_em])
def test_with_nothing_to_return_it_ends_as_by_ctrl_c(learn: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        learn(GAPPY if learn is sf.structural_em else ROWS, progress=lambda step: True)
