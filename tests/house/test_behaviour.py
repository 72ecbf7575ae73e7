"""A distribution has behaviour: outside their room nobody asks which family, distribution or prior something is.

The syntax trees of the package are searched for `isinstance`, `issubclass`, `type(x) is`, `match` on a class, and for probes
`hasattr(x, "name")` and `getattr(x, "name", default)` of what families, conditional distributions and priors have.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.syntax import SOURCES, nodes_of, sources, tree_of

ROOM = "families"

BASES = {"Cpd", "Prior", "Family", "Glm", "ByHand"}
"""What concrete classes are made from: whether something that a user gave is one of these may be asked."""

EXCEPTIONS = {
    ("numerics/exponential/protocol/statistic.py", "getattr names"): "a distribution without a node, a statistic or a number",
    ("numerics/exponential/arithmetic/values.py", "getattr names"): "the same",
    ("learning/chains/chain_problem.py", "getattr numbers"): "a layout of chains, which has unknown numbers or not",
    ("learning/incomplete/problem.py", "getattr pools"): "a graph, which may be a plate",
    ("models/questions/question.py", "hasattr to_dict"): "evidence given as a series of a data frame",
    ("models/parts/sharing.py", "TiedPrior"): "the file in which this prior lives",
    ("recipes/structural/structural_search.py", "hasattr start"): "a method of search, which may have a graph to start from",
    ("structure/search.py", "getattr start"): "the same",
}
"""Questions that are left, by file and what is asked for, each with its reason."""


TOY = "models/toy.py"
"""A file of the package that there is only while it is tested that questions are found."""


@cache
def trees() -> dict[str, ast.Module]:
    return {str(p.relative_to(SOURCES)): tree_of(p) for p in sources()}


@cache
def nodes_in(path: str) -> tuple[ast.AST, ...]:
    """What is looked at in a file: the walk through all the rest is made once."""
    looked_at = ast.ClassDef | ast.ImportFrom | ast.Call | ast.Compare | ast.MatchClass
    nodes = nodes_of(SOURCES / path) if path != TOY else ast.walk(trees()[path])
    return tuple(n for n in nodes if isinstance(n, looked_at))


@cache
def module_of(path: str) -> str:
    return ".".join(("suffice", *Path(path).with_suffix("").parts)).removesuffix(".__init__")


@cache
def bindings(path: str) -> dict[str, tuple[str, str]]:
    """What the names of a file stand for: the module and the name there."""
    found = {n.name: (module_of(path), n.name) for n in classes_in(path)}
    for node in nodes_in(path):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("suffice"):
            found |= {a.asname or a.name: (node.module, a.name) for a in node.names}
    return found


@cache
def classes_in(path: str) -> tuple[ast.ClassDef, ...]:
    return tuple(n for n in nodes_in(path) if isinstance(n, ast.ClassDef))


@cache
def concrete() -> set[tuple[str, str]]:
    """The classes of the room, what anywhere else is made from them, and names of modules that stand for some of them (passed
    on, or constants that list them), as (module, name)."""
    found = {(module_of(p), c.name) for p in trees() if p.startswith(f"{ROOM}/") for c in classes_in(p) if c.name not in BASES}
    bases = {(module_of(p), c.name) for p in trees() if p.startswith(f"{ROOM}/") for c in classes_in(p) if c.name in BASES}
    while True:
        before = len(found), len(bases)
        for path, tree in trees().items():
            names, module = bindings(path), module_of(path)
            bases |= {(module, name) for name, target in names.items() if target in bases}
            found |= {(module, name) for name, target in names.items() if target in found}
            for c in classes_in(path):
                made_from = [names.get(_name(b)) for b in c.bases]
                if any(b in found or b in bases for b in made_from) and c.name not in BASES:
                    found.add((module, c.name))
            for node in tree.body:
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
                    listed = any(names.get(_name(e)) in found for e in node.value.elts)
                    found |= {(module, _name(t)) for t in node.targets if listed}
        if before == (len(found), len(bases)):
            return found


@cache
def members() -> set[str]:
    """What families, conditional distributions and priors have."""
    classes = [c for p in trees() if p.startswith(f"{ROOM}/") for c in classes_in(p)]
    kinds = {"Cpd", "Prior"} | {c.name for c in classes if "n_parameters" in _members(c)}
    while more := {c.name for c in classes if {_name(b) for b in c.bases} & kinds} - kinds:
        kinds |= more
    return {m for c in classes if c.name in kinds for m in _members(c) if not m.startswith("_")}


def _members(node: ast.ClassDef) -> set[str]:
    functions = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
    return functions | {n.target.id for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        return _name(node.value)
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def questions(path: str, classes: set[tuple[str, str]]) -> Iterator[tuple[str, int, str]]:
    """Where a file asks for a class or probes for a member: the file, the line and what is asked for."""
    names, module = bindings(path), module_of(path)

    def asked(node: ast.AST) -> set[str]:
        return {
            _name(n) for n in ast.walk(node) if isinstance(n, ast.expr) and names.get(_name(n), (module, _name(n))) in classes
        }

    for node in nodes_in(path):
        found: set[str] = set()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            f, arguments = node.func.id, node.args
            if f in ("isinstance", "issubclass"):
                found = asked(arguments[1])
            elif f in ("hasattr", "getattr") and len(arguments) == (2 if f == "hasattr" else 3):
                literal = arguments[1].value if isinstance(arguments[1], ast.Constant) else ""
                found = {f"{f} {literal}"} if literal in members() else set()
        elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Call) and _name(node.left.func) == "type":
            found = {name for c in node.comparators for name in asked(c)}
        elif isinstance(node, ast.MatchClass):
            found = asked(node.cls)
        yield from ((path, node.lineno, name) for name in sorted(found))


@cache
def all_questions() -> list[tuple[str, int, str]]:
    return [q for path in trees() if not path.startswith(f"{ROOM}/") for q in questions(path, concrete())]


def test_nobody_asks_for_the_class_of_a_distribution_a_family_or_a_prior() -> None:
    found = [f"{path}:{line} asks for {name}" for path, line, name in all_questions() if (path, name) not in EXCEPTIONS]
    assert not found, "\n".join(found)


def test_every_exception_is_one() -> None:
    assert {(path, name) for path, _, name in all_questions()} >= set(EXCEPTIONS)


def test_the_search_finds_what_it_looks_for() -> None:
    """Each form of the question, asked in a file of the package."""
    text = "\n".join(
        [
            "from suffice.families.categorical import Table as T",
            "KINDS = (T, int)",
            "isinstance(x, (T, int)); isinstance(x, KINDS); type(x) is T; hasattr(x, 'probs'); getattr(x, 'rates', None)",
            "match x:",
            "    case T(): pass",
        ]
    )
    trees()[TOY] = ast.parse(text)
    concrete.cache_clear()
    try:
        assert [name for *_, name in questions(TOY, concrete())].count("T") == 3
        assert len(list(questions(TOY, concrete()))) == 6
    finally:
        del trees()[TOY]
        concrete.cache_clear()
        for known in (bindings, classes_in, nodes_in):
            known.cache_clear()


if __name__ == "__main__":
    found = all_questions()
    for path, line, name in found:
        print(f"{path}:{line} {name}")
    print(len(found), "questions;", Counter(p.split("/")[0] for p, *_ in found))
