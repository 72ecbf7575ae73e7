"""Checkpoints: a run that was stopped or killed goes on, and ends in the same bits; one of another run is refused by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import suffice as sf
from suffice.engines import checkpoints
from suffice.engines.checkpoints import Checkpoint
from suffice.errors import FitError, FormatError, SufficeError
from tests.recipes.checkpointed_runs import RUNS, end_of

ROWS = {"a": list("xyxy") * 10, "b": list("uuvv") * 10, "c": list("ppqp") * 10}
GAPS = {**ROWS, "a": [None, *list("yxy"), *list("xyxy") * 9]}


class Killed(BaseException):
    """As if the process were gone."""


@pytest.fixture
def killed_after(monkeypatch, tmp_path):
    """Every step is written down; the run ends after so many times of writing."""
    write = Checkpoint._write

    def killed(name: str, n: int) -> int:
        """How often a run wrote before it was killed, or came to its end."""
        done = 0

        def once(self: Checkpoint) -> None:
            nonlocal done
            write(self)
            done += 1
            if done == n:
                self._journal = None  # nothing more is written
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(checkpoints, "EVERY", 0.0)
            patch.setattr(checkpoints, "SHARE", 1e9)
            patch.setattr(Checkpoint, "_write", once)
            with suppress(Killed):
                end_of(name, tmp_path / "checkpoint")
        return done

    return killed


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_was_killed_ends_in_the_same_bits(name, killed_after, tmp_path):
    for n in (2, 20, 5):
        killed_after(name, n)
    assert end_of(name, tmp_path / "checkpoint") == end_of(name)
    assert not (tmp_path / "checkpoint").exists()


def test_what_is_known_is_not_computed_again(killed_after, tmp_path):
    """A run that is resumed after each step comes to its end, so it gets somewhere each time."""
    calls = 0
    while killed_after("pc", 1) == 1:
        calls += 1
        assert calls < 200
    assert calls > 10
    assert not (tmp_path / "checkpoint").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked to be killed")
def test_killed_at_random_moments():
    script, names = Path(__file__).with_name("checkpointed_runs.py"), ["em", "tabu", "structural_em"]
    places = {**os.environ, "PYTHONPATH": str(Path(sf.__file__).parent.parent)}
    words = [sys.executable, script, ",".join(names), "5", "1"]
    told = subprocess.run(words, capture_output=True, text=True, env=places, check=True).stdout
    ends = [json.loads(line) for line in told.splitlines()]
    assert [(end["run"], end["damaged"], end["same"]) for end in ends] == [(name, [], True) for name in names]


def test_the_clock_leaves_a_checkpoint(tmp_path):
    rows = {n: [*c, *c] for n, c in GAPS.items()}
    place = tmp_path / "ck"
    how = {"hidden": [sf.Finite("h", ["0", "1"])], "tol": 0.0, "max_iter": 10**7, "starts": 2}
    with pytest.warns(sf.SufficeNote, match="stopped"):
        sf.em("h -> a; h -> b; h -> c", rows, **how, time_limit=0.3, checkpoint=place)
    assert (place / "run.json").is_file()
    state = next(place.rglob("*.ckpt"))
    before = state.stat().st_mtime_ns
    with pytest.warns(sf.SufficeNote, match="stopped"):
        further = sf.em("h -> a; h -> b; h -> c", rows, **how, time_limit=0.3, checkpoint=place)
    assert next(place.rglob("*.ckpt")).stat().st_mtime_ns > before
    seconds = [t.seconds for t in further.trace]
    assert seconds == sorted(seconds)


def test_ctrl_c_leaves_a_checkpoint(tmp_path):
    def rows(n: int) -> dict[str, list[str]]:
        rng = np.random.default_rng(0)
        return {f"x{i}": rng.choice(["a", "b"], n).tolist() for i in range(8)}

    class Interrupting(sf.HillClimb):
        def run(self, problem):
            problem.scores.pairs()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sf.search(rows(50), method=Interrupting(), checkpoint=tmp_path / "ck")
    assert (tmp_path / "ck" / "000000.ckpt").is_file()


def _left(place: Path, **how: object) -> None:
    """A checkpoint of a search that was killed."""

    class Stopped(sf.HillClimb):
        def run(self, problem):
            problem.scores.pairs()
            raise Killed

    Stopped.__name__ = "HillClimb"
    with pytest.raises(Killed):
        sf.search(ROWS, method=Stopped(**how.pop("method", {})), checkpoint=place, **how)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, r"was made with seed 0, not 1: give another directory"),
        ({"score": sf.AIC()}, r"was made with score BIC\(\), not AIC\(\)"),
        ({"constraints": sf.Forbid(("a", "b"))}, r"with constraints None, not Forbid\(\('a', 'b'\)\)"),
        ({"method": sf.HillClimb(restarts=3)}, "was made with another method"),
        ({"data": {**ROWS, "c": list("pqqp") * 10}}, "from data with other values of 'c'"),
        ({"data": {"a": ROWS["a"], "b": ROWS["b"]}}, "from other data, with the columns 'c'"),
        ({"data": {**ROWS, "d": ROWS["c"]}}, "from other data, without the columns 'd'"),
        ({"data": {**ROWS, "c": [1.5, 2.5, 3.5, 4.5] * 10}}, "from data in which 'c' is Finite, not Real"),
    ],
)
def test_a_checkpoint_of_another_run_says_what_differs(change, message, tmp_path):
    _left(tmp_path / "ck")
    asked = {"data": ROWS, "method": sf.HillClimb(), **change}
    with pytest.raises(FitError, match=message):
        sf.search(asked.pop("data"), **asked, checkpoint=tmp_path / "ck")
    assert sf.search(ROWS, method=sf.HillClimb(), checkpoint=tmp_path / "ck").dag == sf.search(ROWS, method=sf.HillClimb()).dag


def test_a_checkpoint_of_another_learner(tmp_path):
    _left(tmp_path / "ck")
    with pytest.raises(FitError, match="was made by the learner search, not bootstrap"):
        sf.bootstrap(ROWS, n=3, checkpoint=tmp_path / "ck")


def test_a_checkpoint_of_another_version(tmp_path):
    _left(tmp_path / "ck")
    told = json.loads((tmp_path / "ck" / "run.json").read_text())
    told["run"]["version"] = "0.0.1"
    (tmp_path / "ck" / "run.json").write_text(json.dumps(told))
    with pytest.raises(FitError, match=r"was made by version 0\.0\.1, not"):
        sf.search(ROWS, method=sf.HillClimb(), checkpoint=tmp_path / "ck")


@pytest.mark.parametrize("n", [0, 1, 40, -30])
@pytest.mark.parametrize("name", ["000000.ckpt", "run.json"])
def test_damaged_files_are_told_by_name(name, n, tmp_path):
    _left(tmp_path / "ck")
    path = tmp_path / "ck" / name
    path.write_bytes(path.read_bytes()[:n])
    with pytest.raises(FormatError, match=rf"{name}: this file of a checkpoint is damaged .* remove the directory"):
        sf.search(ROWS, method=sf.HillClimb(), checkpoint=tmp_path / "ck")


def test_a_bit_that_flipped_is_seen(tmp_path):
    _left(tmp_path / "ck")
    path = tmp_path / "ck" / "000000.ckpt"
    good = path.read_bytes()
    at = good.index(b"NUMPY") + 130
    path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
    with pytest.raises(FormatError, match="is damaged"):
        sf.search(ROWS, method=sf.HillClimb(), checkpoint=tmp_path / "ck")


def test_directories_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FormatError, match="there can be no checkpoint here"):
        sf.search(ROWS, checkpoint=tmp_path / "file")
    with pytest.raises(FormatError, match="holds other files, and no checkpoint"):
        sf.search(ROWS, checkpoint=tmp_path)
    with pytest.raises(SufficeError, match="checkpoint is the path of a directory, not 3"):
        sf.search(ROWS, checkpoint=3)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_disk_that_fills_up_does_not_end_the_run(monkeypatch, tmp_path):
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)

    def full(*words: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints, "write_archive", full)
    with pytest.warns(sf.SufficeNote, match=r"cannot be written any more .*No space left.*: the run goes on without one"):
        found = sf.search(ROWS, method=sf.HillClimb(), checkpoint=tmp_path / "ck")
    assert found.dag == sf.search(ROWS, method=sf.HillClimb()).dag


def test_methods_without_a_checkpoint_say_so(tmp_path):
    numbers = {n: np.random.default_rng(i).normal(size=40) for i, n in enumerate("abc")}
    with pytest.raises(FitError, match="GraphicalLasso keeps no checkpoint"):
        sf.search(numbers, method=sf.GraphicalLasso(), checkpoint=tmp_path / "ck")
    fits = {"plain": lambda rows: sf.fit("a -> b", rows)}
    with pytest.raises(FitError, match="fits that are compared have no checkpoint"):
        sf.cross_validate(ROWS, method=fits, target="b", checkpoint=tmp_path / "ck")


def test_a_journal_that_another_way_was_taken_in_forgets_the_rest(monkeypatch, tmp_path):
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", 1e9)
    run = {"learner": "demo"}

    def steps(names: str) -> list[float]:
        with Checkpoint(tmp_path / "ck", run) as journal:
            return [float(journal.answer([n], lambda n=n: made.append(n) or np.array(float(ord(n))))) for n in names]

    made: list[str] = []
    steps("abcd")
    steps("abxy")
    assert made == list("abcdxy")
    assert steps("abxyz") == [float(ord(n)) for n in "abxyz"]
    assert made == list("abcdxyz")


def test_answers_of_steps_within_a_step(monkeypatch, tmp_path):
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", 1e9)
    made: list[object] = []

    def outer(n: int, killed_at: int) -> np.ndarray:
        def inner(k: int) -> np.ndarray:
            if k == killed_at:
                raise Killed
            made.append((n, k))
            return np.arange(k + 1)

        return np.concatenate([journal.answer(["inner", k], lambda k=k: inner(k)) for k in range(3)])

    for killed_at in (1, 2, 9):
        with Checkpoint(tmp_path / "ck", {"learner": "demo"}) as journal, suppress(Killed):
            result = [journal.answer(["outer", n], partial(outer, n, killed_at)) for n in range(2)]
    assert made == [(n, k) for n in range(2) for k in range(3)]
    assert [r.tolist() for r in result] == [[0, 0, 1, 0, 1, 2]] * 2


def test_a_step_that_fails_is_forgotten(monkeypatch, tmp_path):
    """What it kept is not taken for that of the next step, which has the same number."""
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", 1e9)

    def fails() -> np.ndarray:
        journal.keep(lambda: ("half way", ()))
        raise FitError("no estimate")

    with Checkpoint(tmp_path / "ck", {"learner": "demo"}) as journal:
        with pytest.raises(FitError):
            journal.answer(["step"], fails)
        assert [p.name for p in (tmp_path / "ck").iterdir()] == ["run.json"]
        journal.answer(["step", np.int64(2)], lambda: np.array([journal.kept is None]))
    with Checkpoint(tmp_path / "ck", {"learner": "demo"}) as journal:
        assert journal.answer(["step", 2], fails).tolist() == [True]


def test_the_command_line_goes_on(run, monkeypatch, tmp_path):
    lines = ["a,b,c", *(",".join(cells) for cells in zip(*ROWS.values(), strict=True))]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    assert run("learn", "rows.csv", "--checkpoint", "ck", "--bootstrap", "3", "-o", "net.json")[0] == 0
    assert not (tmp_path / "ck").exists()
    (tmp_path / "gaps.csv").write_text("\n".join([*lines, ",u,p"]) + "\n")
    assert run("learn", "gaps.csv", "--checkpoint", "ck", "-o", "net.json")[0] == 0
    words = ("fit", "a -> b; a -> c", "gaps.csv", "--checkpoint", "ck", "-o", "net.json", "--tol", "0", "--max-iter", "10000000")
    code, _, err = run(*words, "--time-limit", "0.2")
    assert code == 0
    assert "stopped" in err
    assert (tmp_path / "ck" / "run.json").is_file()
    code, _, err = run(*words, "--seed", "4", "--time-limit", "0.2")
    assert code != 0
    assert "the checkpoint in 'ck' was made with seed 0, not 4" in err
    assert "--checkpoint is not for undirected" in run("learn", "rows.csv", "--method", "decomposable", "--checkpoint", "q")[2]
