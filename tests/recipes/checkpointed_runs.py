"""One run of each learner that keeps checkpoints, small enough to be killed often: for tests and for `benchmarks/checkpoints.py`.

    python tests/recipes/checkpointed_runs.py NAME KILLS SEED

makes the run unbroken; then so many times in a process that is killed −9 at a random moment, all in one directory, where each
goes on from what is left; and at last to its end. Every file that is left has to be whole, and every run that comes to its end
has to end in the same bits.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("SUFFICE_COMPILE", "now")  # no thread that compiles while a process is forked

import suffice as sf
from suffice.engines import checkpoints

N = 400


def _table(n_columns: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    columns: dict[str, np.ndarray] = {}
    for i in range(n_columns):
        own = rng.integers(0, 2, N)
        columns[f"x{i:02d}"] = own & (rng.random(N) < 0.6) ^ (columns[f"x{i - 2:02d}"] if i > 1 else 0)
    return columns


def _finite(n_columns: int, gaps: float = 0.0) -> dict[str, list[str | None]]:
    rng = np.random.default_rng(8)
    lost = {name: rng.random(N) < gaps for name in _table(n_columns)}
    return {n: [None if gap else "ny"[x] for x, gap in zip(c, lost[n], strict=True)] for n, c in _table(n_columns).items()}


def _real(n_columns: int) -> dict[str, Any]:
    rng = np.random.default_rng(9)
    return {name: column + rng.normal(size=N) for name, column in _table(n_columns).items()}


def _sequences() -> sf.chains.Sequences:
    return sf.sequences({**_finite(4), "id": [str(i // 20) for i in range(N)]}, by="id")


def _network(model: Any) -> list[Any]:
    """All parameters of a network, bit by bit."""
    names = ("probs", "intercept", "coefficients", "variance", "rates")
    return [(n, [np.asarray(vars(model[n])[a]).tobytes().hex() for a in names if a in vars(model[n])]) for n in model]


def _run(run: Any) -> list[Any]:
    return [_network(run.model), [tuple(t)[:2] for t in run.trace], run.converged]


def _em(run: Any) -> list[Any]:
    return [*_run(run), run.optima]


def _found(found: Any) -> list[Any]:
    tests = [] if found.details is None else [sorted(found.details.separated.items()), found.details.n_tests]
    return [found.cpdag, found.score, [tuple(t)[:3] for t in found.trace], found.bound, tests]


def _posterior(p: Any) -> list[Any]:
    return [p.matrix.tobytes().hex(), p.log_scores.tobytes().hex(), p.best, p.acceptance.tolist()]


def _hidden(place: Any, **how: Any) -> Any:
    graph = "; ".join(f"h -> {n}" for n in _table(6))
    return sf.em(graph, _finite(6, 0.1), hidden=[sf.Finite("h", ["a", "b", "c"])], starts=3, max_iter=50, checkpoint=place, **how)


def _search(method: Any, n_columns: int, rows: Callable[[int], Any] = _finite, **how: Any) -> Callable[[Any], Any]:
    return lambda place: sf.search(rows(n_columns), method=method, checkpoint=place, progress=False, **how)


def _regressions(place: Any) -> Any:
    rows = {**_real(5), "x01": _finite(5)["x01"]}
    return sf.search(rows, method=sf.HillClimb(), families={"x01": sf.Logistic()}, checkpoint=place)


RUNS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], list[Any]]]] = {
    "em": (_hidden, _em),
    "em, accelerated": (lambda place: _hidden(place, method=sf.methods.Squarem()), _em),
    "em, in batches": (lambda place: _hidden(place, method=sf.methods.Incremental(3)), _em),
    "em of numbers": (
        lambda place: sf.em(
            "; ".join(f"f -> {n}" for n in _table(5)), _real(5), hidden=[sf.Real("f")], starts=2, max_iter=25, checkpoint=place
        ),
        _em,
    ),
    "em of sequences": (
        lambda place: sf.em(
            "h[-1] -> h -> x00; h -> x01",
            _sequences(),
            hidden=[sf.Finite("h", ["a", "b"])],
            starts=2,
            max_iter=25,
            checkpoint=place,
        ),
        _em,
    ),
    "orders": (_search(sf.Orders(max_parents=2), 20), _found),
    "hill climb": (_search(sf.HillClimb(restarts=5), 14), _found),
    "tabu": (_search(sf.methods.Tabu(), 14), _found),
    "ges": (_search(sf.methods.GES(), 14), _found),
    "exact": (_search(sf.Exact(max_parents=2), 15), _found),
    "pc": (_search(sf.PC(), 12), _found),
    "mmhc": (_search(sf.methods.MMHC(), 12), _found),
    "numbers": (_search(sf.methods.Tabu(), 12, _real), _found),
    "regressions": (_regressions, _found),
    "steps": (lambda place: sf.search(_sequences(), checkpoint=place), _found),
    "learn": (lambda place: sf.learn(_finite(18), method=sf.HillClimb(restarts=3), checkpoint=place), _network),
    "structural_em": (lambda place: sf.structural_em(_finite(7, 0.1), checkpoint=place), _run),
    "structural_em, hidden": (
        lambda place: sf.structural_em(_finite(4), hidden=[sf.Finite("h", ["a", "b"])], starts=2, max_iter=15, checkpoint=place),
        _run,
    ),
    "mixture": (lambda place: sf.mixture(_real(4), [2, 3], starts=3, max_iter=30, checkpoint=place), _em),
    "order_mcmc": (lambda place: sf.methods.order_mcmc(_finite(10), max_parents=2, samples=400, checkpoint=place), _posterior),
    "bootstrap": (
        lambda place: sf.bootstrap(_finite(8), method=sf.HillClimb(), n=30, checkpoint=place),
        lambda sure: [sure.n_done, sure.counts.tolist()],
    ),
    "cross_validate": (
        lambda place: sf.cross_validate(_finite(8), method=sf.HillClimb(), folds=10, checkpoint=place),
        lambda cv: list(cv.folds),
    ),
}
"""Of each learner a run, with its checkpoint in a directory (or None), and what of its result has to be the same."""


def end_of(name: str, place: Any = None) -> str:
    """A digest of what a run comes to."""
    run, facts = RUNS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.SufficeNote)
        return hashlib.sha256(repr(facts(run(place))).encode()).hexdigest()[:16]


def damaged(place: Path) -> Iterator[str]:
    """The files of a checkpoint that cannot be read; those that were being written are not of it yet."""
    for path in place.rglob("*"):
        if path.suffix == ".ckpt" and (not zipfile.is_zipfile(path) or zipfile.ZipFile(path).testzip() is not None):
            yield path.name
        if path.name == "run.json":
            json.loads(path.read_text("utf-8"))


def killed_often(name: str, kills: int, seed: int) -> dict[str, Any]:
    """What became of a run that was killed so often, beside the one that was not."""
    unbroken = end_of(name)
    checkpoints.EVERY, checkpoints.SHARE = 0.0, 1e9  # so often that every step may be the last one written
    place = Path(tempfile.mkdtemp()) / "checkpoint"
    begun = time.perf_counter()
    child = _forked(name, place)
    while not (place / checkpoints.RUN).exists() and not place.with_name("end").exists():
        time.sleep(0.001)
    opened = time.perf_counter() - begun
    os.waitpid(child, 0)
    seconds = time.perf_counter() - begun
    rng, broken, ends, left = random.Random(seed), list[str](), {place.with_name("end").read_text()}, 0
    for _ in range(kills):
        child = _forked(name, place)
        time.sleep(rng.uniform(0.8 * opened, 1.1 * seconds))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        broken += damaged(place)
        left += place.is_dir()
        ends.add(place.with_name("end").read_text())
    ends.add(end_of(name, place))
    return {
        "run": name,
        "seconds": round(seconds, 3),
        "kills": kills,
        "left": left,
        "damaged": broken,
        "same": ends == {unbroken},
    }


def _forked(name: str, place: Path) -> int:
    """A process that makes the run, and writes what it came to beside its checkpoint."""
    child = os.fork()
    if not child:
        end = end_of(name, place)
        place.with_name("new end").write_text(end)
        place.with_name("new end").replace(place.with_name("end"))
        os._exit(0)
    return child


if __name__ == "__main__":
    for run in sys.argv[1].split(","):
        print(json.dumps(killed_often(run, int(sys.argv[2]), int(sys.argv[3]))), flush=True)
