"""What the explorer holds: models and tables, each under an id, and the files that were uploaded; and refusals that have a status
of their own."""

from __future__ import annotations

import itertools
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from suffice.errors import ModelError, SufficeError, notes_kept
from suffice.interfaces.explorer.code import Origin


class NotHeld(SufficeError):
    """A model, table or job that is not there, or no longer."""


class Busy(SufficeError):
    """A job is running, and there is one at a time."""


class TooMuch(SufficeError):
    """A body that is larger than what is taken."""


STATUS: Mapping[type[SufficeError], int] = {NotHeld: 404, Busy: 409, TooMuch: 413}
"""Of refusals that are not 400."""


KINDS = {"bayes_net": "bayes_net", "markov_net": "markov_net", "gaussian_markov_net": "markov_net"}
"""What is opened, and what the page calls it."""

INSTEAD = {
    "chain": "a chain, a model of sequences: suffice decode, smooth, filter and forecast ask it",
    "crf": "a conditional random field, a model of labels given all else: suffice predict labels sequences",
    "rbm": "a restricted Boltzmann machine, which has no exact answers: suffice predict gives its hidden units",
}
"""What is not, and the command that answers instead."""

MOST_AFTER = 8
"""Networks after interventions that are kept of each model."""


@dataclass(eq=False)
class HeldModel:
    """A model, where it comes from, and what was found of it."""

    id: str
    name: str
    network: Any
    origin: Origin
    table: str | None = None
    """The data that it was learned from, or opened with."""
    notes: tuple[str, ...] = ()
    found: Any = None
    """The search that it comes from, or what its data say of its graph."""
    found_python: str = ""
    """The statements that give it."""
    strengths: Any = None
    """The bootstrap of its edges."""
    kept: dict[Any, Any] = field(default_factory=dict)
    """Answers that do not change: layouts, orders of rows."""
    _after: OrderedDict[str, Any] = field(default_factory=OrderedDict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def directed(self) -> bool:
        """Whether edges are arrows."""
        return hasattr(self.network, "dag")

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        graph = self.network.dag if self.directed else self.network.graph
        return tuple(graph.edges)

    def after(self, do: Mapping[str, Any]) -> Any:
        """The network after what is set from outside; the last ones are kept, with what was made to answer for them."""
        if not do:
            return self.network
        key = repr(sorted(do.items()))
        with self.lock:
            if key not in self._after:
                self._after[key] = self.network.do(dict(do))
            self._after.move_to_end(key)
            while len(self._after) > MOST_AFTER:
                self._after.popitem(last=False)
            return self._after[key]

    def facts(self) -> dict[str, Any]:
        """What the page is told of it."""
        net = self.network
        return {
            "id": self.id,
            "name": self.name,
            "kind": KINDS[net.file_kind],
            "n_nodes": len(net.variables),
            "n_edges": len(self.edges),
            "n_parameters": int(net.n_parameters),
            "has_posterior": self.directed and bool(net.is_fitted) and (net.prior is not None or net.incomplete),
            "origin": net.fit_info,
            "table": self.table,
            "notes": list(self.notes),
            "code": self.origin.code("print(bn)", f"suffice show {self.origin.shell}"),
        }


@dataclass(eq=False)
class HeldTable:
    """Rows, and where they come from."""

    id: str
    name: str
    data: Any
    origin: Origin
    path: Path | None = None
    """The file that was uploaded."""
    kept: dict[Any, Any] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "rows": int(self.data.n_rows),
            "columns": len(self.data.columns),
            "code": self.origin.code("print(data.schema)", f"suffice schema {self.origin.shell}{self.origin.flags}"),
        }


class Shelf:
    """All that is held. Ids are never used again."""

    def __init__(self) -> None:
        self.models: dict[str, HeldModel] = {}
        self.tables: dict[str, HeldTable] = {}
        self._numbers = itertools.count(1)
        self.lock = threading.RLock()
        self.job: Any = None
        """The job that is running, or ran last."""
        self.learned = itertools.count(1)
        """The numbers of networks that are learned here."""
        self._room: tempfile.TemporaryDirectory[str] | None = None
        self.open: dict[str, str | None] = {"model": None, "table": None, "against": None}
        """What the page shows first."""

    def model(self, id: str) -> HeldModel:
        if id not in self.models:
            raise NotHeld(f"there is no model {id!r}, or no longer")
        return self.models[id]

    def table(self, id: str) -> HeldTable:
        if id not in self.tables:
            raise NotHeld(f"there is no table {id!r}, or no longer")
        return self.tables[id]

    def new_id(self, letter: str) -> str:
        """An id that nothing had."""
        return f"{letter}{next(self._numbers)}"

    def table_of(self, model: HeldModel) -> HeldTable:
        """The rows that a model is judged by: its own, or the last that have its columns."""
        if model.table in self.tables:
            return self.tables[model.table]
        names = set(model.network.variables)
        for table in reversed(list(self.tables.values())):
            if names <= set(table.data.columns):
                return table
        raise SufficeError(f"{model.name} has no data to be judged by: open a table with all of its columns")

    def add_model(self, network: Any, name: str, origin: Origin, **more: Any) -> HeldModel:
        """Hold a model; those that are no networks of rows are refused."""
        kind = getattr(network, "file_kind", None)
        if kind not in KINDS:
            what = INSTEAD.get(str(kind), f"a {type(network).__name__}: it opens Bayesian and Markov networks")
            raise ModelError(f"{name} holds {what}, not the explorer")
        with self.lock:
            held = HeldModel(self.new_id("m"), name, network, origin, **more)
            self.models[held.id] = held
        return held

    def add_table(self, data: Any, name: str, origin: Origin, path: Path | None = None) -> HeldTable:
        """Hold rows, which are looked through now."""
        if not hasattr(data, "schema") or not hasattr(data, "n_rows"):
            raise SufficeError(f"{name} holds no rows: the explorer takes tables")
        _ = data.n_rows, data.schema
        with self.lock:
            held = HeldTable(self.new_id("d"), name, data, origin, path)
            self.tables[held.id] = held
        return held

    def drop_model(self, id: str) -> None:
        self.model(id)
        del self.models[id]

    def drop_table(self, id: str) -> None:
        """Let go of rows, and of their file."""
        gone = self.table(id)
        del self.tables[id]
        if gone.path is not None and all(other.path != gone.path for other in list(self.tables.values())):
            gone.path.unlink(missing_ok=True)

    @property
    def room(self) -> Path:
        """Where uploads go: a directory that nobody else reads, and that goes with the explorer."""
        with self.lock:
            if self._room is None:
                self._room = tempfile.TemporaryDirectory(prefix="suffice-explorer-")
            return Path(self._room.name)

    def close(self) -> None:
        with self.lock:
            self.models.clear()
            self.tables.clear()
            if self._room is not None:
                self._room.cleanup()
                self._room = None


def bundled_model(shelf: Shelf, name: str) -> HeldModel:
    """Hold a network that comes with the package."""
    from suffice.formats.registry import NAMES, load

    if name not in NAMES:
        raise ModelError(f"there is no bundled network {name!r}; there are {', '.join(NAMES)}")
    return shelf.add_model(load(name), name, Origin(f"bn = sf.load({name!r})", name))


def read_model(shelf: Shelf, path: Path, name: str, word: str) -> HeldModel:
    """Hold the model in a file, which `word` says where to find outside."""
    from suffice.formats.registry import read

    with notes_kept() as notes:
        network = read(path)
    said = tuple(str(note).replace(str(path), name) for note in notes)
    return shelf.add_model(network, name, Origin(f"bn = sf.read({word!r})", word), notes=said)


def read_table(shelf: Shelf, path: Path, name: str, word: str, *, upload: bool = False) -> HeldTable:
    """Hold the rows of a file."""
    from suffice.engines.scan import scan

    origin = Origin(f"data = sf.scan({word!r})", word)
    return shelf.add_table(scan(str(path)), name, origin, path if upload else None)
