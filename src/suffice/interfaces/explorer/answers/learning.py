"""Learning: what it would cost, one job at a time, what it finds step by step, and a stop that keeps the best so far."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from suffice.basis.iteration import TraceStep
from suffice.errors import SufficeError, notes_kept
from suffice.interfaces.explorer.calls import Call
from suffice.interfaces.explorer.code import Origin, found_prior, in_csv, method_of, options, python_of, score_of
from suffice.interfaces.explorer.code import choices as offered
from suffice.interfaces.explorer.shelf import Busy, HeldModel, HeldTable, NotHeld, Shelf

OFTEN = 0.05
"""Seconds between two steps that are told; those between are not."""

MOST_RESAMPLES = 10_000


@dataclass(eq=False)
class LearningJob:
    """A run in a thread of its own, what it told, and how it ended."""

    id: str
    kind: str
    table: str
    steps: list[dict[str, Any]] = field(default_factory=list)
    end: dict[str, Any] | None = None
    _stop: bool = False
    _last: float = 0.0

    def facts(self) -> dict[str, Any]:
        return {"id": self.id, "kind": self.kind, "table": self.table, "running": self.end is None}

    def watch(self, step: TraceStep) -> bool:
        """Take note of a step; whether to stop."""
        now = time.monotonic()
        if now - self._last >= OFTEN or not self.steps:
            self._last = now
            score = step.score if step.score == step.score else None
            facts = {"step": len(self.steps) + 1, "score": score, "text": step.what, "seconds": step.seconds}
            self.steps.append(facts)
        return self._stop

    def stop(self) -> None:
        self._stop = True

    def run(self, work: Callable[[LearningJob], HeldModel]) -> None:
        """Do the work, and say how it ended."""
        model, error = None, None
        try:
            with notes_kept() as notes:
                model = work(self)
            model.notes = tuple(dict.fromkeys([*model.notes, *(str(note) for note in notes)]))
        except SufficeError as refusal:
            error = str(refusal)
        except KeyboardInterrupt:  # what a stop is before there is anything to keep
            error = "it was stopped before anything was found"
        except MemoryError:
            error = "it took more memory than there is"
        except Exception as mistake:
            error = f"an error of ours: {type(mistake).__name__}: {mistake}"
        self.end = {"model": None if model is None else model.id, "stopped": self._stop, "error": error}


def choices(request: Call) -> dict[str, Any]:
    """What can be chosen."""
    return offered()


def learn(request: Call) -> dict[str, Any]:
    """Learn a network, or foretell what that would cost."""
    table = request.shelf.table(request.part("table", str))
    plan = LearnPlan.of(request, table)
    if request.part("dry_run", bool, False):
        return plan.cost()
    return start(request.shelf, "learn", table, partial(plan.learn, request.shelf)).facts()


def strengths(request: Call) -> dict[str, Any]:
    """How often each edge is found when rows are resampled."""
    from suffice.recipes.resampling import bootstrap

    model, table = request.model, request.shelf.table(request.part("table", str))
    n = request.part("n", int, 100)
    if not 1 <= n <= MOST_RESAMPLES:
        raise SufficeError(f"the number of resamples is from 1 to {MOST_RESAMPLES:,}, not {n}")
    rows = model.network.rows(table.data)

    def work(job: LearningJob) -> HeldModel:
        model.strengths = bootstrap(rows, n=n, progress=job.watch)
        return model

    return start(request.shelf, "bootstrap", table, work).facts()


def stop(request: Call) -> dict[str, Any]:
    job(request.shelf, request.path["id"]).stop()
    return {}


def job(shelf: Shelf, id: str) -> LearningJob:
    """The job of an id."""
    if shelf.job is None or shelf.job.id != id:
        raise NotHeld(f"there is no job {id!r}, or no longer")
    found: LearningJob = shelf.job
    return found


def start(shelf: Shelf, kind: str, table: HeldTable, work: Callable[[LearningJob], HeldModel]) -> LearningJob:
    """Start a job, if none is running."""
    with shelf.lock:
        if shelf.job is not None and shelf.job.end is None:
            raise Busy("a job is running, and there is one at a time: wait for it, or stop it")
        shelf.job = LearningJob(shelf.new_id("j"), kind, table.id)
    threading.Thread(target=shelf.job.run, args=(work,), name=f"suffice {kind}", daemon=True).start()
    started: LearningJob = shelf.job
    return started


@dataclass(frozen=True)
class LearnPlan:
    """What to learn from, and how; in Python, and as options."""

    table: HeldTable
    score: Any
    method: Any
    prior: Any
    constraints: Any
    time_limit: float | None
    seed: int
    arguments: tuple[str, ...]
    """Of `search`, in Python."""
    python: str
    commands: tuple[str, ...]
    flags: str

    @classmethod
    def of(cls, request: Call, table: HeldTable) -> LearnPlan:
        score, method, prior = (request.part(name, str, None) or None for name in ("score", "method", "prior"))
        most, seed = request.part("max_parents", int, None), request.part("seed", int, 0)
        limit = request.part("time_limit", (int, float), None)
        constraints, told, commands, rules = _constraints(request)
        chosen = {"score": score_of(score), "method": method_of(method, most)}
        arguments = [f"{name}={python_of(value)}" for name, value in chosen.items() if value is not None]
        arguments += [f"constraints={told}"] if told else []
        arguments += [f"seed={seed}"] if seed else []
        own: Any = ... if prior is None else None if prior == "mle" else found_prior(prior)
        fitted = [] if prior is None else [f"prior={python_of(own)}"]
        python = f"bn = sf.learn({', '.join(['data', *arguments, *fitted])})"
        flags = options(score=score, method=method, max_parents=most, prior=prior, seed=seed or None) + rules
        how: dict[str, Any] = {"constraints": constraints, "time_limit": limit, "seed": seed}
        spoken: dict[str, Any] = {"arguments": tuple(arguments), "python": python, "commands": commands, "flags": flags}
        return cls(table, **chosen, prior=own, **how, **spoken)

    @property
    def keywords(self) -> dict[str, Any]:
        """What `search` and `learn` take alike."""
        asked = {"score": self.score, "method": self.method, "constraints": self.constraints, "seed": self.seed}
        return {**asked, "time_limit": self.time_limit}

    @property
    def has_gaps(self) -> bool:
        return any(self.table.data.missing.values())

    def origin(self, name: str) -> Origin:
        """Where the network comes from."""
        own = self.table.origin
        if own.word is None:
            return Origin(f"{own.python}\n{self.python}", None)
        file = f"{name}.json"
        command = f"suffice learn {own.shell}{own.flags} -o {shlex.quote(file)}{self.flags}"
        return Origin(f"{own.python}\n{self.python}", file, (*own.commands, *self.commands, command))

    def cost(self) -> dict[str, Any]:
        """What it would cost."""
        from suffice.structure.search import search

        code = self.origin("learned").code("")
        if self.has_gaps:
            said = "rows have missing cells: structural EM searches again and again, for how long is not known before"
            return {"cost": said, "seconds": None, "bytes": None, "code": code}
        with notes_kept() as notes:
            plan = search(self.table.data, **self.keywords, dry_run=True)
        said = "\n".join([str(plan), *(str(note) for note in notes)])
        return {"cost": said, "seconds": float(plan.seconds), "bytes": float(plan.bytes), "code": code}

    def learn(self, shelf: Shelf, job: LearningJob) -> HeldModel:
        """The network, as `learn` gives it; and the search that it comes from, where there is one."""
        from suffice.recipes.learn import PRIOR, learn, network_of
        from suffice.structure.results.found import Found
        from suffice.structure.search import search

        prior = PRIOR if self.prior is ... else self.prior
        found = None
        if self.has_gaps:
            network = learn(self.table.data, prior=prior, **self.keywords, progress=job.watch)
        else:
            found = search(self.table.data, **self.keywords, progress=job.watch)
            network = network_of(found, self.table.data, prior)
        name = f"learned {next(shelf.learned)}"
        explained = found if isinstance(found, Found) and found.losses else None
        origin = self.origin(name.replace(" ", "-"))
        held = shelf.add_model(network, name, origin, table=self.table.id, found=explained)
        held.found_python = f"found = sf.search({', '.join(['data', *self.arguments])})"
        return held


def _constraints(request: Call) -> tuple[Any, str, tuple[str, ...], str]:
    """Constraints, in Python, as commands that come first, and as options."""
    from suffice.structure.constraints import Constraints, Forbid, Require, Tiers

    parts: list[Constraints] = []
    told: list[str] = []
    commands: tuple[str, ...] = ()
    flags = ""
    for name, kind in (("require", Require), ("forbid", Forbid)):
        pairs = request.part(name, list, [])
        if not all(isinstance(p, list) and len(p) == 2 and all(isinstance(x, str) for x in p) for p in pairs):
            raise SufficeError(f"{name!r} is a list of pairs of names")
        if pairs:
            edges = [tuple(pair) for pair in pairs]
            parts.append(kind(*edges))
            told.append(f"sf.{kind.__name__}({', '.join(map(repr, edges))})")
            flags += options(**{name: [in_csv(edge) for edge in edges]})
    tiers = request.part("tiers", list, [])
    if not all(isinstance(t, list) and all(isinstance(x, str) for x in t) for t in tiers):
        raise SufficeError("'tiers' is a list of lists of names")
    if tiers:
        parts.append(Tiers(*tiers))
        told.append(f"sf.Tiers({', '.join(map(repr, tiers))})")
        commands = (f"printf '%s\\n' {' '.join(shlex.quote(in_csv(tier)) for tier in tiers)} > tiers.txt",)
        flags += " --tiers tiers.txt"
    return (Constraints(*parts) if parts else None), " + ".join(told), commands, flags
