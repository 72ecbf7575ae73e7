"""A function or method is a verb, or a noun that says its result: `merge_rows`, `matching_files`. A bare participle hides both.

Of an object it is an adjective: a property, or a method without arguments that answers yes or no, may be `converged`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

import pytest

from tests.house.test_house import modules
from tests.syntax import nodes_of

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


PUBLIC = {
    "completed": ("Cpdag", "an example of the reference calls it"),
    "separated": ("Graph Undirected", "pages and tutorials call it, as `d_separated` of a directed graph"),
    "triangulated": ("Graph", "a page calls it"),
    "lagged": ("Sequences", "an example of the reference calls it"),
    "averaged": ("Bootstrap", "an example of the reference calls it"),
    "ordered": ("Factor", "a member of a public result with an entry of its own in the reference"),
    "recoded": ("Statistics Counts Moments", "a member of public statistics with an entry of its own in the reference"),
    "listed": ("Counts", "a member of public statistics with an entry of its own in the reference"),
    "joined": ("And Or", "examples of the reference call it; rules of users have it"),
    "allowed": ("TransitionRule BIO BIOES Transitions", "examples of the reference call it; rules of users have it"),
    "bound": ("ByHand Gaussian Rates Regression", "an example of the reference calls it"),
}
"""Methods that are bare participles, and stay since users call them: their classes, and where users met them."""


def functions(nodes: Collection[ast.AST]) -> Iterator[str]:
    """The functions of a file, those within functions, too, but no methods."""
    own = {id(node) for owner in nodes if isinstance(owner, ast.ClassDef) for node in owner.body}
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and id(node) not in own:
            yield node.name


def methods(nodes: Collection[ast.AST]) -> Iterator[tuple[str, str]]:
    """Class and name of each method that is no adjective: those that take arguments, or answer something else than yes or no."""
    for owner in nodes:
        if isinstance(owner, ast.ClassDef):
            for node in owner.body:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_adjective(node):
                    yield owner.name, node.name


def _is_adjective(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    decorators = {ast.unparse(d).split(".")[-1] for d in method.decorator_list}
    own = method.args
    takes = len(own.posonlyargs) + len(own.args) > ("staticmethod" not in decorators) or own.kwonlyargs or own.vararg or own.kwarg
    answers = ast.unparse(method.returns) if method.returns else ""
    return bool(decorators & {"property", "cached_property", "setter"}) or (answers == "bool" and not takes)


def test_functions_are_verbs_or_nouns() -> None:
    participles = {
        module: found
        for module, file in modules().items()
        if (found := [name for name in functions(nodes_of(file)) if is_bare_participle(name)])
    }
    assert not participles, f"bare participles; say what is done (merge_rows), or what comes out (matching_files): {participles}"


def test_methods_are_verbs_or_nouns() -> None:
    participles = {
        module: found
        for module, file in modules().items()
        if (found := [f"{owner}.{name}" for owner, name in methods(nodes_of(file)) if _hides_its_result(owner, name)])
    }
    assert not participles, f"bare participles; say what is done (merge_rows), or what comes out (matching_files): {participles}"


def _hides_its_result(owner: str, name: str) -> bool:
    return is_bare_participle(name) and owner not in PUBLIC.get(name, ("", ""))[0].split()


def test_what_stays_is_there() -> None:
    here = {method for file in modules().values() for method in methods(nodes_of(file))}
    stale = [(owner, name) for name, (owners, _) in PUBLIC.items() for owner in owners.split() if (owner, name) not in here]
    assert not stale, f"no such methods any more: {stale}"


@pytest.mark.parametrize(
    ("name", "bare"),
    [("merged", True), ("_held", True), ("merge_rows", False), ("fixed_nodes", False), ("read", False), ("seed", False)],
)
def test_what_a_bare_participle_is(name: str, bare: bool) -> None:
    assert is_bare_participle(name) is bare


def test_functions_within_functions_count() -> None:
    tree = ast.parse(
        "def a():\n    def merged(): ...\nclass C:\n    def proved(self): ...\n    def b(self):\n        def held(): ..."
    )
    assert list(functions(list(ast.walk(tree)))) == ["a", "merged", "held"]


def test_adjectives_are_no_methods() -> None:
    tree = ast.parse(
        "class C:\n    @property\n    def held(self): ...\n    @cached_property\n    def drawn(self): ...\n"
        "    def proved(self) -> bool: ...\n    def merged(self) -> C: ...\n    def seen(self, name) -> bool: ...\n"
        "    @staticmethod\n    def fitted(rows) -> bool: ...\n    class D:\n        def told(self, *, name=1) -> bool: ..."
    )
    assert list(methods(list(ast.walk(tree)))) == [("C", "merged"), ("C", "seen"), ("C", "fitted"), ("D", "told")]
