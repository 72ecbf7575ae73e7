"""What a command leaves behind when nobody reads it any more, or when it is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import suffice as sf
from suffice.interfaces.cli.app import main

SUFFICE = (sys.executable, "-m", "suffice")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = {"x": ["a", "b"] * 100, "y": ["u", "u", "v", "v"] * 50, "n": [0.1 * (i % 17) for i in range(200)]}
    (tmp_path / "rows.csv").write_text("x,y,n\n" + "\n".join(",".join(map(str, r)) for r in zip(*rows.values(), strict=True)))
    (tmp_path / "steps.csv").write_text("id,s\n" + "".join(f"{i // 10},{'ab'[i // 3 % 2]}\n" for i in range(100)))
    (tmp_path / "gaps.csv").write_text("id,s\n1,a\n1,\n1,b\n2,b\n2,\n")
    (tmp_path / "holes.csv").write_text("x,y\n" + "a,u\nb,v\n,u\nb,\na,u\nb,v\n" * 20)
    sf.write(sf.fit("x -> y", {n: rows[n] for n in "xy"}), tmp_path / "m.json")
    sf.write(sf.fit(sf.Template("s[-1] -> s"), sf.sequences(tmp_path / "steps.csv", by="id")), tmp_path / "chain.json")
    return tmp_path


def unread(monkeypatch: Any, folder: Path, *words: str, errors: bool = False) -> int:
    """Run a command whose standard output, or whose standard error, too, is a pipe that nobody reads: the exit code."""
    reading, writing = os.pipe()
    os.close(reading)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["suffice", *words])
    code: Any = 0
    with open(writing, "w") as pipe, open(os.dup(writing), "w", buffering=1) as other, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", pipe)
        if errors:
            patch.setattr(sys, "stderr", other)
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    return int(code)


WRITTEN: dict[str, tuple[str, ...]] = {
    "arrows": ("learn", "rows.csv", "--without", "n", "-o", "new.json"),
    "lines": ("learn", "rows.csv", "--without", "n", "--method", "stepwise", "-o", "new.json"),
    "steps": ("learn", "steps.csv", "--by", "id", "--lags", "1", "-o", "new.json"),
    "holes": ("learn", "holes.csv", "-o", "new.json"),
    "fit": ("fit", "x -> y", "rows.csv", "-o", "new.json"),
}
PRINTED: tuple[tuple[str, ...], ...] = (
    ("query", "m.json", "P(y)"),
    ("query", "m.json", "P(y)", "--json"),
    ("score", "m.json", "rows.csv"),
    ("show", "m.json"),
    ("predict", "m.json", "rows.csv", "--target", "y"),
    ("sample", "m.json", "-n", "10"),
    ("missing", "rows.csv"),
    ("compare", "m.json", "m.json"),
    ("decode", "chain.json", "gaps.csv", "--by", "id"),
    ("smooth", "chain.json", "gaps.csv", "--by", "id"),
    ("filter", "chain.json", "gaps.csv", "--by", "id"),
    ("forecast", "chain.json", "steps.csv", "--by", "id"),
    ("learn", "rows.csv", "--without", "n", "--dry-run"),
    ("--help",),
    ("--version",),
)


@pytest.mark.parametrize("errors", [False, True])
@pytest.mark.parametrize("what", WRITTEN)
def test_a_model_is_written_though_nobody_reads(monkeypatch: Any, capsys: Any, folder: Path, what: str, errors: bool) -> None:
    assert unread(monkeypatch, folder, *WRITTEN[what], errors=errors) == 0
    assert "roken" not in capsys.readouterr().err
    assert len(sf.read(folder / "new.json").variables) > 0


@pytest.mark.parametrize("words", PRINTED, ids=" ".join)
def test_a_closed_pipe_ends_quietly(monkeypatch: Any, capsys: Any, folder: Path, words: tuple[str, ...]) -> None:
    assert unread(monkeypatch, folder, *words) == 0
    assert "rror" not in capsys.readouterr().err


def environment_of_a_user() -> dict[str, str]:
    """Without what tests ask of the compiler, for which a process loads more than it needs."""
    kept = {name: value for name, value in os.environ.items() if name != "SUFFICE_COMPILE"}
    return {**kept, "PYTHONPATH": str(Path(sf.__file__).parent.parent)}


def started(folder: Path, *words: str, **how: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*SUFFICE, *words], cwd=folder, env=environment_of_a_user(), **how)


def test_a_closed_pipe_of_a_process_of_its_own(folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with started(folder, *WRITTEN["arrows"], stdout=writing, stderr=subprocess.PIPE) as process:
        os.close(writing)
        told = process.stderr.read() if process.stderr else b""
    assert process.returncode == 0
    assert b"written to new.json" in told
    assert b"rror" not in told
    assert (folder / "new.json").exists()


def test_a_command_that_is_ended_leaves_no_half_file(folder: Path) -> None:
    """SIGTERM while rows are being written: the file beside its place is there before, and gone after."""
    with open(folder / "big.csv", "w") as file:
        file.write("x\n")
        for _ in range(400):
            file.write("a\nb\n" * 10_000)
    with started(folder, "predict", "m.json", "big.csv", "--target", "y", "-o", "out.csv", stderr=subprocess.PIPE) as process:
        until = time.monotonic() + 120
        while not (parts := list(folder.glob(".*.part"))) and process.poll() is None and time.monotonic() < until:
            time.sleep(0.005)
        assert parts
        process.send_signal(signal.SIGTERM)
        told = process.stderr.read() if process.stderr else b""
    assert process.returncode == 143
    assert told.decode().endswith("ended by a signal\n")
    assert not list(folder.glob(".*.part"))
    assert not (folder / "out.csv").exists()


def test_an_interrupt_at_the_very_end_is_no_death_by_signal(folder: Path) -> None:
    """What is sent after the result was printed, while Python takes itself down, changes nothing."""
    for delay in (0.0, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08):
        with started(folder, "query", "m.json", "P(y)", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout
            process.stdout.read(1)
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
        assert process.returncode in (0, 130)


def test_a_terminal_shows_rows_as_a_table_and_a_pipe_gets_csv(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    call = [sys.executable, "-m", "suffice", "sample", "asia", "-n", "60", "--seed", "1"]
    master, terminal = pty.openpty()
    places = {"cwd": tmp_path, "env": environment_of_a_user()}
    ran = subprocess.run(call, stdout=terminal, stderr=subprocess.PIPE, check=True, **places)
    os.close(terminal)
    shown = os.read(master, 100_000).decode().splitlines()
    os.close(master)
    assert shown[0].split() == ["asia", "tub", "smoke", "lung", "bronc", "either", "xray", "dysp"]
    assert set(shown[1]) == {"─", " "}
    assert set(shown[2].split()) <= {"yes", "no"}
    assert shown[-1] == "… and 10 rows more: -o FILE writes all, | cat prints them as CSV"
    assert not ran.stderr
    piped = subprocess.run(call, stdout=subprocess.PIPE, text=True, check=True, **places).stdout.splitlines()
    assert piped[0] == "asia,tub,smoke,lung,bronc,either,xray,dysp"
    assert len(piped) == 61
