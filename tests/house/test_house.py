"""How the house is built: no file of the package imports, in however many steps, one that imports it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx

from tests.syntax import SOURCES, nodes_of, sources


def modules() -> dict[str, Path]:
    """The files of the package by what they are imported as, `suffice.` left out; a room's own file goes by the room's name."""
    return {".".join(p.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__"): p for p in sources()}


@cache
def nodes(file: Path) -> tuple[ast.AST, ...]:
    """The imports and classes of a file."""
    return tuple(n for n in nodes_of(file) if isinstance(n, ast.ImportFrom | ast.Import | ast.ClassDef))


def imported(file: Path) -> Iterator[str]:
    """All that a file imports of the package, wherever it says so: at its head, in functions, for type checkers only."""
    for node in nodes(file):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: imports name the whole way"
            yield from (node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@cache
def graph() -> nx.DiGraph:
    files = modules()
    named = {
        name: {m.removeprefix("suffice.") for m in imported(file) if m.startswith("suffice.")} for name, file in files.items()
    }
    return nx.DiGraph([(name, other) for name, others in named.items() for other in others & files.keys() - {name}])


def test_no_file_imports_what_imports_it() -> None:
    cycles = [sorted(part) for part in nx.strongly_connected_components(graph()) if len(part) > 1]
    assert not cycles, f"files that import each other, in however many steps: {cycles}"


def test_imports_in_functions_and_for_type_checkers_count() -> None:
    edges = graph().edges
    assert ("models.chain", "models.chains.chain_answers") in edges  # in a method
    assert ("models.chain", "models.networks") in edges  # for type checkers
    assert ("formats", "formats.registry") in edges  # a room's own file
    assert ("formats.json.model", "formats.repository_json") in edges  # import … as …


def test_no_class_name_stands_for_two_things() -> None:
    """A reader who meets a name need not ask which of two classes it is."""
    homes: dict[str, list[str]] = {}
    for name, file in modules().items():
        for node in nodes(file):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(name)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


ACROSS_ROOMS = {"browser", "house", "laws", "reference", "shared", "spark"}
"""Tests that are of no single room."""


def test_tests_lie_in_folders_that_are_rooms() -> None:
    tests = Path(__file__).parents[1]
    folders = {file.parent.relative_to(tests) for file in tests.rglob("test_*.py")}
    lost = {f for f in folders if f.parts[0] not in ACROSS_ROOMS and not (SOURCES / f).is_dir()}
    assert not lost, f"folders of tests without a room: {sorted(map(str, lost))}"


def test_no_room_is_crowded() -> None:
    """A room shows at most some fifteen files and rooms, its own `__init__` apart."""
    rooms = {SOURCES, *(file.parent for file in SOURCES.rglob("__init__.py"))}
    entries = {room: [f for f in room.iterdir() if f.suffix == ".py" or (f / "__init__.py").exists()] for room in rooms}
    crowded = {str(room.relative_to(SOURCES)): len(some) for room, some in entries.items() if len(some) > 17}
    assert not crowded
