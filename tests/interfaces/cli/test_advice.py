"""Every way out that a message can name is taken: the refusal or note is brought about, and the line that it suggests runs.

What messages there are is read from the sources (`advice_sites`), so that a new one fails here until somebody took it.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterator
from contextlib import chdir
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suffice as sf
from suffice.errors import SufficeNote
from suffice.errors.remedies import BETWEEN, CLOSE, OPEN, in_python
from tests.interfaces.cli.advice import NOT_TAKEN, OBEYED, tables
from tests.interfaces.cli.advice_sites import Site, sites

MARKED = re.compile(f"{OPEN}([^{BETWEEN}]*){BETWEEN}([^{CLOSE}]*){CLOSE}")


def cases() -> dict[str, list[str]]:
    """By line that is refused or noted: those that take its ways out."""
    found: dict[str, list[str]] = {}
    for line in OBEYED.strip().split("\n"):
        if line.startswith("    "):
            found[list(found)[-1]].append(line.strip())
        else:
            found[line] = []
    return found


@pytest.fixture(autouse=True, scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with chdir(tmp_path_factory.mktemp("advice")):
        write_files()
        yield


def write_files() -> None:
    Path("semi.csv").write_text("a;b\n" + "1;x\n2;y\n3;x\n4;y\n" * 5)
    Path("latin.csv").write_bytes("a,b\nq,\xe9\nr,u\nq,\xe9\nr,u\n".encode("latin-1"))
    Path("thousand.csv").write_text("a;b\n" + "1,234;x\n2,345;y\n3,500;x\n" * 5)
    Path("points.csv").write_text("a;b\n" + "1.5;x\n2.5;y\n" * 5)
    Path("commas.csv").write_text("a;b\n" + "1,5;x\n2,5;y\n" * 5)
    Path("words.csv").write_text("a,b\n" + "1.5,x\nNA,y\n2.5,y\n" * 5)
    Path("endless.csv").write_text("a,b\n" + "1.5,x\ninf,y\n2.5,y\n" * 5)
    pq.write_table(pa.table({"x": [1.0, 2.0], "y": ["a", "b"]}), "rows.parquet")


@cache
def names() -> dict[str, Any]:
    """All that is public, in modules by topic, too, but for distributions, and the tables."""
    modules = [getattr(sf, name) for name in dir(sf) if inspect.ismodule(getattr(sf, name)) and name != "exponential"]
    found = {name: getattr(home, name) for home in (*modules, sf) for name in getattr(home, "__all__", vars(home))}
    return found | {"ef": sf.exponential, "np": np} | tables()


class Answer(NamedTuple):
    """What a line says, with the marks of its ways out."""

    notes: tuple[str, ...]
    refusal: str | None

    @property
    def texts(self) -> tuple[str, ...]:
        return (*self.notes, self.refusal) if self.refusal else self.notes

    @property
    def main(self) -> set[str]:
        """The refusal, or else the notes with ways out."""
        return {self.refusal} if self.refusal else {text for text in self.notes if OPEN in text}


@cache
def said(line: str) -> Answer:
    refusal = None
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", SufficeNote)
        try:
            eval(compile(line, "<advice>", "eval"), dict(names()))
        except sf.SufficeError as error:
            refusal = error.said
    return Answer(tuple(str(n.message.said) for n in notes if isinstance(n.message, SufficeNote)), refusal)


@cache
def met(line: str) -> frozenset[Site]:
    """The messages with ways out that a line is answered with."""
    texts = [text for text in said(line).texts if OPEN in text]
    return frozenset(site for site in _sites() if any(site.pattern.search(text) for text in texts))


@cache
def _sites() -> tuple[Site, ...]:
    return tuple(sites())


@pytest.mark.parametrize("line", cases())
def test_a_way_out_is_one(line: str) -> None:
    assert cases()[line], "no line takes the way out"
    first = said(line)
    ways = [way for text in first.texts for way, _ in MARKED.findall(text)]
    assert ways, f"no way out was named: {[in_python(t) for t in first.texts]}"
    in_words = any(re.search(r"\b(leave|fill|observe)\b", text) for text in first.main)
    for then in cases()[line]:
        after = said(then)
        assert after.refusal is None, f"{then}: {in_python(after.refusal)}"
        assert not first.main & {*after.notes}, f"{then} still says {[in_python(t) for t in after.notes]}"
        assert in_words or any(_takes(way, line, then) for way in ways), f"{then} is not what {ways} advise"


def _takes(way: str, line: str, then: str) -> bool:
    """Whether a line has an argument or object that a way out names, or has left it out, or there is none."""
    words = re.findall(r"[A-Za-z_]\w*(?=[=(])", way)
    return not words or any(w in then or then.count(w) < line.count(w) for w in words)


def test_every_way_out_is_taken() -> None:
    """All messages that have one, but those with a reason."""
    taken = {str(site) for line in cases() for site in met(line)}
    every = {str(site) for site in _sites()}
    left = {site for site in every for starts in NOT_TAKEN.values() if site.startswith(starts)}
    assert len(taken) > 200
    assert all(any(site.startswith(start) for site in left) for starts in NOT_TAKEN.values() for start in starts)
    assert not taken & left, taken & left
    assert not every - taken - left, every - taken - left
