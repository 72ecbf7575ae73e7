"""What an argument means: its row on the page of common words, the sentence of the docstring with it, or the text below it."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, is_typeddict

import suffice
from building.public import Name
from suffice.basis.limits import Limits

ARGUMENTS = Path(__file__).parents[1] / "reference" / "arguments.md"
ROW = re.compile(r"^\| ((?:`[\w.]+`(?:, )?)+) \| (.*) \|$", re.M)
CODE = re.compile(r"`[^`]*`")
END = re.compile(r"(?<=\S\.) (?=[A-Z`])")
KINDS = inspect.Parameter


@dataclass(frozen=True)
class Argument:
    """An argument of a public call: its name, type, default and meaning, which is empty where nothing says it."""

    name: str
    type: str
    default: str | None
    meaning: str


def signature_of(name: Name) -> inspect.Signature | None:
    """The signature without its owner; None of what cannot be called, and of results, which the library alone makes."""
    if name.is_property or not callable(name.function) or (name.is_class and name.module == "suffice.results"):
        return None
    try:
        found = inspect.signature(name.function)
    except ValueError:
        return None
    shown = [p for p in found.parameters.values() if p.name not in ("self", "cls") and not p.name.startswith("_")]
    return found.replace(parameters=shown)


def arguments_of(name: Name) -> list[Argument]:
    """The arguments of a call, those of its `**options` one by one."""
    found = signature_of(name)
    if found is None:
        return []
    parts = []
    for p in found.parameters.values():
        options = _options(p) if p.kind is KINDS.VAR_KEYWORD else None
        if options is not None:
            taken = [(n, below) for n, below in options if f"without `{n}`" not in name.doc]
            parts += [Argument(n, "", "", _meaning(name, n) or below) for n, below in taken]
            continue
        star = {KINDS.VAR_POSITIONAL: "*", KINDS.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = None if p.default is p.empty else repr(p.default)
        parts.append(Argument(star + p.name, _type(p.annotation), default, _meaning(name, p.name)))
    return parts


def fields_of(name: Name) -> list[Argument]:
    """What a result, a model or statistics hold: the fields of a class that the library alone makes, or fills."""
    if not name.is_class or is_typeddict(name.thing):
        return []
    if not is_dataclass(name.thing):
        homes = [c for c in name.thing.__mro__ if not is_dataclass(c)]
        said = {field: (text, home) for home in homes for field, text in _below_fields(home).items() if field[0] != "_"}
        held = {field: str(inspect.get_annotations(home)[field]) for field, (_, home) in said.items()}
        return [Argument(f, kind, None, said[f][0]) for f, kind in sorted(held.items()) if not kind.startswith("ClassVar")]
    if name.module != "suffice.results":
        return []
    shown = [f for f in fields(name.thing) if f.repr and not f.name.startswith("_")]
    return [Argument(f.name, _type(f.type), None, _own_meaning(name, f.name)) for f in shown]


def _type(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _options(parameter: inspect.Parameter) -> list[tuple[str, str]] | None:
    """The keywords of `**options: Unpack[X]`, each with what stands below it in X, or in the limits of all long calls."""
    found = re.fullmatch(r"Unpack\[(\w+)\]", _type(parameter.annotation))
    home = _typed_dicts().get(found[1]) if found else None
    if home is None:
        return None
    said = _below_fields(Limits) | _below_fields(home)
    return [(name, said.get(name, "")) for name in home.__annotations__]


@cache
def _typed_dicts() -> dict[str, type]:
    from importlib import import_module
    from pkgutil import walk_packages

    found = {}
    for path in walk_packages(suffice.__path__, "suffice."):
        if path.name.split(".")[1] in ("limits", "learning", "recipes", "structure"):
            found |= {n: x for n, x in vars(import_module(path.name)).items() if isinstance(x, type) and hasattr(x, "__total__")}
    return found


def _meaning(name: Name, argument: str) -> str:
    return _own_meaning(name, argument) or common_words().get(argument, "")


def _own_meaning(name: Name, argument: str) -> str:
    """What the argument of this name means: its own row of the common words, or the docstring, or the text below the field."""
    homes = name.thing.__mro__[:-1] if name.is_class else ()
    below = next((text for home in homes if (text := _below_fields(home).get(argument))), "")
    return common_words().get(f"{name.short}.{argument}") or next(_sentences(name.doc, argument), "") or below


def _sentences(doc: str, argument: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\n|\n(?=- )", doc):
        if ">>>" not in paragraph:
            text = " ".join(paragraph.removeprefix("- ").split())
            ends = [m.start() for m in END.finditer(CODE.sub(lambda code: "`" * len(code[0]), text))]
            for start, end in zip([0, *ends], [*ends, len(text)], strict=True):
                if re.search(rf"`(?:\w+\()?{re.escape(argument)}\b", text[start:end]):
                    yield text[start:end].strip()


@cache
def common_words() -> dict[str, str]:
    """The words of docs/reference/arguments.md."""
    if not ARGUMENTS.exists():
        return {}
    rows = ROW.findall(ARGUMENTS.read_text("utf-8"))
    return {word: meaning for words, meaning in rows for word in re.findall(r"`([\w.]+)`", words)}


@cache
def _below_fields(home: type) -> dict[str, str]:
    """The texts that stand below the fields of a class in its source."""
    if not home.__module__.startswith("suffice"):
        return {}
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(home)))
    except (OSError, TypeError, SyntaxError):
        return {}
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
