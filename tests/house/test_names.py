"""A function is a verb, or a noun that says its result: `merge_rows`, `matching_files`. A bare participle hides both."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.house.test_house import modules
from tests.syntax import tree_of

IRREGULAR = re.compile(
    r"begun|bound|broken|brought|built|caught|chosen|dealt|done|drawn|driven|fallen|felt|found|frozen|given|gone|"
    r"grown|held|hidden|kept|known|laid|left|lent|lost|made|meant|met|paid|redrawn|said|seen|sent|shown|sold|sought|"
    r"spent|spoken|spun|stolen|sunk|swept|taken|thrown|told|torn|understood|unknown|withdrawn|worn|woven|written"
)
"""Participles without -ed. Those that are verbs or nouns as well are none here: read, run, cut, put, set, split, spread."""

NOT_PARTICIPLES = frozenset({"embed", "feed", "need", "seed", "shed", "speed"})


def is_bare_participle(name: str) -> bool:
    word = name.strip("_")
    return IRREGULAR.fullmatch(word) is not None or (word.endswith("ed") and "_" not in word and word not in NOT_PARTICIPLES)


def functions(tree: ast.AST) -> Iterator[str]:
    """The functions of a file, those within functions, too. Methods are not: of an object, `proved` is an adjective."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not isinstance(tree, ast.ClassDef):
            yield node.name
        yield from functions(node)


def test_functions_are_verbs_or_nouns() -> None:
    participles = {
        module: found
        for module, file in modules().items()
        if (found := [name for name in functions(tree_of(file)) if is_bare_participle(name)])
    }
    assert not participles, f"bare participles; say what is done (merge_rows), or what comes out (matching_files): {participles}"


@pytest.mark.parametrize(
    ("name", "bare"),
    [("merged", True), ("_held", True), ("merge_rows", False), ("fixed_nodes", False), ("read", False), ("seed", False)],
)
def test_what_a_bare_participle_is(name: str, bare: bool) -> None:
    assert is_bare_participle(name) is bare


def test_functions_within_functions_count_and_methods_do_not() -> None:
    tree = ast.parse(
        "def a():\n    def merged(): ...\nclass C:\n    def proved(self): ...\n    def b(self):\n        def held(): ..."
    )
    assert list(functions(tree)) == ["a", "merged", "held"]
