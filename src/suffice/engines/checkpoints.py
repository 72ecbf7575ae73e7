"""Checkpoints: what a long run has found so far, in files, so that a run that was killed goes on where it was.

A learner is a function of its data, its options and its seed. So its journal is enough: what its costly steps answered, in their
order. A run that is resumed takes the same steps; those whose answers are in the journal cost nothing, and it ends in the same
bits. A step may have a journal of its own while it is under way, which goes when the step has its answer, and a state, of which
only the last is kept.

    DIR/run.json           what the run is of, so that it is never gone on with by another
    DIR/000000.ckpt        answers of steps, as many as there were when it was written
    DIR/000007/            the journal of step 7, which is under way
    DIR/000007/state.ckpt  and its state

Every file is written beside its place, brought to the disk and renamed into it. Whatever files there are, they are a true part of
the run's own story: being killed loses what was not written yet, and no more.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
import zipfile
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from suffice.basis.iteration import Load, Memory, OutOfTime, Pack, Packed, pack_arrays, unpack_arrays
from suffice.basis.output.files import replacing
from suffice.engines.scan import scan
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import FitError, FormatError, listing, note
from suffice.statistics import Moments, Statistics
from suffice.statistics.file import DAMAGE, archived_array, header_of, write_archive

V = TypeVar("V")

EVERY = 10.0
"""Seconds between two times of writing, at least,"""

SHARE = 0.01
"""and longer where writing would take more than this share of the run."""

VERSION = 1
RUN, STATE, STEPS = "run.json", "state.ckpt", ".ckpt"


class StepAnswer(NamedTuple):
    """What a step of a run was asked, and what it answered."""

    label: list[Any]
    answer: Packed


class Journal(Memory):
    """The answers of a run, or of one of its steps; those that are in `place` first."""

    def __init__(self, place: Path, of: list[Any]) -> None:
        self.place, self.of = place, of
        self.n_steps = 0
        self._asked: list[Any] | None = None  # what the step is asked that is under way,
        self._step: Journal | None = None  # and its journal, if it keeps one
        self._n_files = 0
        self._first = 0  # the number of the first answer that is not in the files
        self._read: list[StepAnswer] = []  # the answers of the last file that was read,
        self._ahead: deque[StepAnswer] = deque()  # and those of them that were not asked for yet
        self._new: list[StepAnswer] = []
        self._state: Callable[[], Packed] | None = None
        self._has_files = place.is_dir()

    def answer(self, label: list[Any], make: Callable[[], V], pack: Pack[V] = pack_arrays, unpack: Load[V] = unpack_arrays) -> V:
        if self._asked is not None:
            return self._inner.answer(label, make, pack, unpack)
        known = self._recall(label)
        if known is not None:
            self.n_steps += 1
            return unpack(known)
        self._asked = label
        try:
            value = make()
        except OutOfTime:
            raise  # as after Ctrl-C, the step stays under way, and is written down so
        except Exception:
            shutil.rmtree(self.place / f"{self.n_steps:06d}", ignore_errors=True)  # the next step is another one
            self._asked = self._step = None
            raise
        self._asked = self._step = None
        self._new.append(StepAnswer(label, pack(value)))
        self.n_steps += 1
        return value

    @property
    def _inner(self) -> Journal:
        """The journal of the step that is under way."""
        if self._step is None:
            assert self._asked is not None
            self._step = Journal(self.place / f"{self.n_steps:06d}", self._asked)
        return self._step

    def keep(self, state: Callable[[], Packed]) -> None:
        if self._asked is not None:
            return self._inner.keep(state)
        self._state = state
        return None

    @property
    def kept(self) -> Packed | None:
        if self._asked is not None:
            return self._inner.kept
        path = self.place / STATE
        answers = self._read_file(path) if self._has_files and path.is_file() else []
        return answers[0].answer if answers else None

    @property
    def has_news(self) -> bool:
        """Whether there is something to be written."""
        return bool(self._new) or self._state is not None or (self._step is not None and self._step.has_news)

    def write(self) -> None:
        """Write down what is new."""
        if self._new or self._state is not None:
            self.place.mkdir(parents=True, exist_ok=True)
        if self._new:
            self._write_file(f"{self._n_files:06d}{STEPS}", self._new, self._first)
            self._n_files, self._first, self._new = self._n_files + 1, self.n_steps, []
            for old in (d for d in self.place.iterdir() if d.name.isdigit() and int(d.name) < self.n_steps):
                shutil.rmtree(old)
        if self._state is not None:
            self._write_file(STATE, [StepAnswer(["state"], self._state())], 0)
            self._state = None
        if self._step is not None:
            self._step.write()

    def _recall(self, label: list[Any]) -> Packed | None:
        """The answer of the next step, if the journal has it."""
        if not self._ahead and self._has_files:
            path = self.place / f"{self._n_files:06d}{STEPS}"
            self._has_files = path.is_file()
            if self._has_files:
                self._read = self._read_file(path)
                self._ahead = deque(self._read)
                self._first += len(self._read)
                self._n_files += 1
        if not self._ahead:
            return None
        if self._ahead[0].label != label:
            self._go_another_way()
            return None
        return self._ahead.popleft().answer

    def _go_another_way(self) -> None:
        """Forget the rest: a limit of time or memory led a run before this one elsewhere."""
        used = self._read[: len(self._read) - len(self._ahead)]
        later = sorted(p for p in self.place.iterdir() if p.is_dir() or p.name > f"{self._n_files - 1:06d}{STEPS}")
        for path in reversed([p for p in later if p.name != RUN]):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self._n_files, self._first, self._new = self._n_files - 1, self._first - len(self._read), used
        self._ahead.clear()
        self._has_files = False

    def _write_file(self, name: str, answers: list[StepAnswer], first: int) -> None:
        """The arrays of one type stand one after the other: a journal may have many small ones."""
        parts: dict[str, list[Any]] = {}
        told = []
        for label, (document, arrays) in answers:
            shapes = []
            for array in map(np.asarray, arrays):
                parts.setdefault(array.dtype.str[1:], []).append(array.ravel())
                shapes.append([array.dtype.str[1:], list(array.shape)])
            told.append([label, document, shapes])
        header = {"suffice": "checkpoint", "version": VERSION, "of": self.of, "first": first, "answers": told}
        joined = {kind: np.concatenate(some) for kind, some in parts.items()}
        write_archive(self.place / name, header, joined, small=False, lasting=True)

    def _read_file(self, path: Path) -> list[StepAnswer]:
        try:
            with zipfile.ZipFile(path) as archive:
                header = header_of(archive)
                if header["suffice"] != "checkpoint" or header["version"] != VERSION:
                    raise ValueError("not a checkpoint")
                if header["of"] != self.of or header["first"] != (0 if path.name == STATE else self._first):
                    return []
                kinds = dict.fromkeys(kind for _, _, shapes in header["answers"] for kind, _ in shapes)
                joined, at = {kind: archived_array(archive, kind) for kind in kinds}, dict.fromkeys(kinds, 0)
        except FormatError as error:
            raise _damage_error(path, str(error)) from None
        except DAMAGE as error:
            raise _damage_error(path, f"{type(error).__name__}: {error}") from None
        answers = []
        for label, document, shapes in header["answers"]:
            arrays = []
            for kind, shape in shapes:
                size = int(np.prod(shape, dtype=np.int64))
                arrays.append(joined[kind][at[kind] : at[kind] + size].reshape(shape).copy())
                at[kind] += size
            answers.append(StepAnswer(label, (document, tuple(arrays))))
        return answers


def _damage_error(path: Path, why: str) -> FormatError:
    return FormatError(f"this file of a checkpoint is damaged ({why}): remove the directory, and the run begins anew", path=path)


class Checkpoint(Memory):
    """A directory that a run keeps its journal in. When the run comes to its end, `finish` removes it."""

    def __init__(self, place: str | PathLike[str], run: Mapping[str, Any]) -> None:
        self.place, self.run = Path(place), json.loads(json.dumps(dict(run)))
        self._last, self._cost = time.perf_counter(), 0.0  # when it was written, and how long that took
        self._journal: Journal | None = None

    def __enter__(self) -> Checkpoint:
        """Make the directory, or see that it is of the same run."""
        try:
            self.place.mkdir(parents=True, exist_ok=True)
            there = sorted(p.name for p in self.place.iterdir())
        except OSError as error:
            raise FormatError(f"there can be no checkpoint here: {error.strerror}", path=self.place) from None
        cut_off = [name for name in there if name.startswith(".") and name.endswith(".part")]  # of a run that was killed
        for name in cut_off:
            (self.place / name).unlink()
        if RUN in there:
            refuse_differences(self.place, self._read_run(), self.run)
        elif len(there) > len(cut_off):
            raise FormatError("this directory holds other files, and no checkpoint: give one of its own", path=self.place)
        else:
            with replacing(self.place / RUN, lasting=True) as place:
                place.write_text(json.dumps({"suffice": "checkpoint", "version": VERSION, "run": self.run}), encoding="utf-8")
        self._journal = Journal(self.place, [])
        return self

    def __exit__(self, *_: object) -> None:
        if self._journal is not None and self._journal.has_news:
            self._write()
        self._journal = None

    def answer(self, label: list[Any], make: Callable[[], V], pack: Pack[V] = pack_arrays, unpack: Load[V] = unpack_arrays) -> V:
        if self._journal is None:
            return make()
        try:
            value = self._journal.answer(label, make, pack, unpack)
        except (OutOfTime, KeyboardInterrupt):
            self._write()
            self._journal = None  # what is asked from here on is about the best so far
            raise
        self._write_if_due()
        return value

    def keep(self, state: Callable[[], Packed]) -> None:
        if self._journal is not None:
            self._journal.keep(state)
            self._write_if_due()

    @property
    def kept(self) -> Packed | None:
        return None if self._journal is None else self._journal.kept

    def finish(self) -> None:
        """The run came to its end, unless it was stopped: then there is nothing to go on with."""
        if self._journal is None:
            return
        self._journal = None
        try:
            for path in sorted(self.place.iterdir(), key=lambda p: p.name == RUN):  # what it is of goes last
                if path.is_dir() and path.name.isdigit():
                    shutil.rmtree(path)
                elif path.name == RUN or path.suffix == STEPS:
                    path.unlink()
            if not any(self.place.iterdir()):
                self.place.rmdir()
        except OSError as error:  # the run has its result all the same
            note(f"the checkpoint in {str(self.place)!r} cannot be removed: {error.strerror}")

    def _write_if_due(self) -> None:
        due = time.perf_counter() - self._last >= max(EVERY, self._cost / SHARE)
        if due and self._journal is not None and self._journal.has_news:
            self._write()

    def _write(self) -> None:
        begun = time.perf_counter()
        try:
            assert self._journal is not None
            self._journal.write()
        except (OSError, FormatError) as error:
            note(f"the checkpoint in {str(self.place)!r} cannot be written any more ({error}): the run goes on without one")
            self._journal = None
        self._last = time.perf_counter()
        self._cost = self._last - begun

    def _read_run(self) -> Any:
        try:
            told = json.loads((self.place / RUN).read_text(encoding="utf-8"))
            if told["suffice"] != "checkpoint" or told["version"] != VERSION:
                raise ValueError("not a checkpoint")
            return told["run"]
        except DAMAGE as error:
            raise _damage_error(self.place / RUN, f"{type(error).__name__}: {error}") from None


def checkpoint_of(place: Any, learner: str, data: Any, options: Mapping[str, Any]) -> Memory:
    """The memory of a run: a checkpoint if a directory is given, else none. A run within another has that of the other."""
    if place is None:
        return Memory()
    return Checkpoint(place, fingerprint(learner, data, options))


SHORT = 60
"""Options in more words than this are not repeated in a message."""


def fingerprint(learner: str, data: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """The learner, its options, the version, and of the data the columns with the counts of their values."""
    weight = None
    if isinstance(data, (Statistics, Moments)):
        entries = [data] if isinstance(data, Moments) else list(data)
        columns = {listing([*e.names, *e.request.real], 9): [_digest(in_words(e)), ""] for e in entries}
    else:
        rows = data.data if isinstance(data, Sequences) else scan(data)
        columns = {str(r["column"]): [_digest(json.dumps(r)), str(r["kind"])] for r in rows.schema.records()}
        weight = repr(float(rows.weight))
    said = {name: in_words(value) for name, value in options.items()}
    return {"learner": learner, "version": version("suffice"), "options": said, "weight": weight, "columns": columns}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def in_words(value: Any) -> str:
    """A value of an option, whole: equal values have equal words."""
    if isinstance(value, np.ndarray):
        return f"array({_digest(f'{value.dtype.str}{value.shape}{value.tobytes().hex()}')})"
    if is_dataclass(value) and not isinstance(value, type):
        # what follows from other fields is neither given nor compared
        own = {f.name: getattr(value, f.name) for f in fields(value) if f.init or f.compare}
        return f"{type(value).__name__}({', '.join(f'{name}={in_words(part)}' for name, part in own.items())})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{in_words(k)}: {in_words(v)}' for k, v in value.items())}}}"
    if isinstance(value, Collection) and type(value).__iter__ in (list.__iter__, tuple.__iter__):
        return f"[{', '.join(map(in_words, value))}]"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def refuse_differences(place: Path, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to go on with a checkpoint of another run, and say what differs."""
    who = (("learner", "the learner"), ("version", "version"))
    found = [f"by {what} {then.get(key)}, not {now.get(key)}" for key, what in who if then.get(key) != now.get(key)]
    if then.get("learner") == now.get("learner"):
        options = then.get("options", {}), now.get("options", {})
        for name in dict.fromkeys([*options[0], *options[1]]):
            before, after = (some.get(name, "None") for some in options)
            short = max(len(before), len(after)) <= SHORT
            if before != after:
                found.append(f"with {name} {before}, not {after}" if short else f"with another {name}")
    other = _other_columns(then.get("columns", {}), now.get("columns", {}))
    if then.get("weight") != now.get("weight") and not other:
        other = [f"from data of weight {then.get('weight')}, not {now.get('weight')}"]
    found += other
    if found:
        raise FitError(
            f"the checkpoint in {str(place)!r} was made {listing(found, 5, 'str')}: give another directory, or remove this one"
        )


def _other_columns(then: Mapping[str, list[str]], now: Mapping[str, list[str]]) -> list[str]:
    if set(then) != set(now):
        lost, new = [n for n in then if n not in now], [n for n in now if n not in then]
        parts = [f"with the columns {listing(lost)}"] * bool(lost) + [f"without the columns {listing(new)}"] * bool(new)
        return [f"from other data, {' and '.join(parts)}"]
    kinds = [f"from data in which {n!r} is {then[n][1]}, not {now[n][1]}" for n in then if then[n][1] != now[n][1]]
    values = [n for n in then if then[n][1] == now[n][1] and then[n][0] != now[n][0]]
    return kinds + ([f"from data with other values of {listing(values)}"] if values else [])
