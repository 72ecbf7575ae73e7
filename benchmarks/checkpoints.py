"""Checkpoints: every learner killed −9 at random moments, and what keeping a checkpoint costs.

    python benchmarks/checkpoints.py [KILLS]      20 if not given; 0 only measures the cost

Kills: see `tests/recipes/checkpointed_runs.py`. Cost: processor seconds of runs with and without a checkpoint, in turns, the
least of some rounds; written every 10 seconds at most, as by default. What checkpoints take by themselves is measured, too, since
two runs differ by more than that on a busy machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("SUFFICE_COMPILE", "now")

import suffice as sf
from suffice.engines import checkpoints

TESTS = Path(__file__).parent.parent / "tests" / "recipes"
ROUNDS = 2


def killed(kills: int) -> None:
    sys.path.insert(0, str(TESTS))
    from checkpointed_runs import RUNS

    for k, name in enumerate(RUNS):
        script = [sys.executable, str(TESTS / "checkpointed_runs.py"), name, str(kills), str(k)]
        told = json.loads(subprocess.run(script, capture_output=True, text=True, check=True).stdout)
        how = "same bits" if told["same"] and not told["damaged"] else f"FAILED: {told}"
        print(
            f"{name:24} {told['seconds']:7.3f} s  {kills} kills, {told['left']:3} left a checkpoint, no damaged file: {how}",
            flush=True,
        )


def rows_of(n: int, n_columns: int) -> dict[str, list[str]]:
    rng = np.random.default_rng(0)
    table = rng.integers(0, 3, (n, n_columns))
    for j in range(2, n_columns):
        copied = rng.random(n) < 0.6
        table[copied, j] = (table[copied, j - 1] + table[copied, j - 2]) % 3
    return {f"x{j:02d}": ["abc"[v] for v in table[:, j]] for j in range(n_columns)}


class Spent:
    """The processor seconds that checkpoints take by themselves: opening, writing, closing, and asking for each answer."""

    def __init__(self) -> None:
        self.seconds, self.n_answers = 0.0, 0
        for owner, name in ((checkpoints, "fingerprint"), *((checkpoints.Checkpoint, n) for n in ("_open", "finish", "_write"))):
            setattr(owner, name, self._timed(getattr(owner, name)))
        checkpoints.Checkpoint.answer = self._counted(checkpoints.Checkpoint.answer)  # type: ignore[method-assign]

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*words: Any, **options: Any) -> Any:
            begun = time.process_time()
            try:
                return function(*words, **options)
            finally:
                self.seconds += time.process_time() - begun

        return timed

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*words: Any) -> Any:
            self.n_answers += 1
            return function(*words)

        return counted

    def taken(self) -> float:
        """What was spent since the last time."""
        result, self.seconds, self.n_answers = self.seconds + self.n_answers * AN_ANSWER, 0.0, 0
        return result


def an_answer() -> float:
    """Seconds that asking for one answer takes beside the answer itself."""
    with tempfile.TemporaryDirectory() as place, checkpoints.Checkpoint(Path(place) / "checkpoint", {}) as memory:
        begun = time.process_time()
        for _ in range(20_000):
            memory.answer(["toggles", 1, 2, 3, -1, 4], lambda: 0.0)
        seconds = time.process_time() - begun
        memory.finish()
    return seconds / 20_000


AN_ANSWER = an_answer()


def cost(what: str, run: Callable[[Any], Any], spent: Spent) -> None:
    seconds: dict[bool, list[float]] = {False: [], True: []}
    own = []
    for k in range(ROUNDS + 1):
        for kept in (False, True):
            with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
                warnings.simplefilter("ignore", sf.SufficeNote)
                begun = time.process_time()
                run(Path(place) / "checkpoint" if kept else None)
                now, share = time.process_time() - begun, spent.taken()
                if k:  # the first round compiles
                    seconds[kept].append(now)
                    own += [share] if kept else []
    plain, with_one = (min(seconds[kept]) for kept in (False, True))
    more, share = with_one / plain - 1.0, max(own) / plain
    print(
        f"{what:24} {plain:6.2f} s without, {with_one:6.2f} s with a checkpoint: {more:+.1%}; its own work {share:.2%}",
        flush=True,
    )


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    if kills:
        killed(kills)
    spent = Spent()
    small, wide = sf.scan(rows_of(50_000, 12)), sf.scan(rows_of(50_000, 60))
    graph = "; ".join(f"h -> {n}" for n in small.columns)
    hidden = [sf.Finite("h", ["0", "1", "2", "3"])]
    cost("em", lambda place: sf.em(graph, small, hidden=hidden, starts=2, tol=0.0, max_iter=800, checkpoint=place), spent)
    cost(
        "search, hill climb",
        lambda place: sf.search(wide, method=sf.HillClimb(restarts=60), checkpoint=place, progress=False),
        spent,
    )
    cost("search, orders", lambda place: sf.search(wide, method=sf.Orders(rounds=4_000), checkpoint=place, progress=False), spent)
    some = wide.take(wide.columns[:20])
    cost("order_mcmc", lambda place: sf.methods.order_mcmc(some, max_parents=3, samples=8_000, checkpoint=place), spent)


if __name__ == "__main__":
    main()
