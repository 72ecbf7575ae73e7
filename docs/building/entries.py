"""The entry of a public name, as MyST Markdown: signature, docstring with example, arguments, what it returns and raises, pages
with it, its source."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import suffice
from building.cells import code_of
from building.meanings import Argument, arguments_of, fields_of, signature_of
from building.public import Name

DOCS = Path(__file__).parents[1]
PACKAGE = Path(suffice.__file__).parent
FENCE = "`" * 7


def entry(name: Name, whole: bool = False) -> Iterator[str]:
    """The entry of a name as MyST Markdown."""
    kind = "class" if name.is_class else "function" if callable(name.thing) else "data"
    fence = FENCE + "``"
    yield from _opening(fence, kind, name, name.path)
    yield from _body(name)
    small = []
    for member in name.members():
        if member.has_example or whole:
            yield from _member(member)
        else:
            small.append(member)
    if small:
        yield from _table_of(small)
    yield from ("", fence, "")


def _opening(fence: str, kind: str, name: Name, shown: str) -> Iterator[str]:
    found = signature_of(name)
    bare = found and found.replace(
        parameters=[p.replace(annotation=p.empty) for p in found.parameters.values()], return_annotation=inspect.Signature.empty
    )
    yield f"{fence}{{py:{kind}}} {shown}{bare if bare and kind != 'property' else ''}"
    yield f":module: {name.module}"
    if isinstance(name.thing, classmethod):
        yield ":classmethod:"
    if isinstance(name.thing, staticmethod):
        yield ":staticmethod:"
    yield ""


def _member(member: Name) -> Iterator[str]:
    kind = "property" if member.is_property else "method"
    yield from _opening(FENCE, kind, member, member.path)
    yield from _body(member)
    yield from (FENCE, "")


def _body(name: Name) -> Iterator[str]:
    yield from markdown(name.doc)
    arguments = arguments_of(name)
    if arguments and (name.has_example or name.owner is None):
        yield from ("", "```{rubric} Arguments", "```", "")
        for a in arguments:
            yield from _argument(a)
    held = fields_of(name)
    if held:
        yield from ("", "```{rubric} Fields", "```", "")
        for a in held:
            yield from _argument(a)
    returned = signature_of(name)
    if returned is not None and not name.is_class and returned.return_annotation is not returned.empty:
        yield from ("", f"**Returns** {_code(_plain(returned.return_annotation))}", "")
    raised = sorted(_raised(name))
    if raised:
        yield from (
            "",
            f"**Raises** {', '.join(_code(x) for x in raised)} where it refuses, with one sentence that says why.",
            "",
        )
    if name.owner is None:
        pages = [f"[{title}](/{page})" for page, title in _pages_with(name.short)]
        yield from ("", f"**See also** {', '.join(pages)}", "") if pages else ()
        yield from ("", f"**Source** {_code(_place(name))}", "") if callable(name.thing) else ()


def _argument(a: Argument) -> Iterator[str]:
    default = "" if a.default is None else f", default {_code(a.default)}" if a.default else ", optional"
    kind = f" ({_code(a.type)}{default})" if a.type else f" ({default[2:]})" if default else ""
    yield f"- {_code(a.name)}{kind}" + (f": {_links(a.meaning)}" if a.meaning else "")


def _table_of(members: list[Name]) -> Iterator[str]:
    yield from ("", "<details><summary>Further members, which other parts of the library call</summary>", "")
    for m in members:
        first = " ".join(m.doc.split("\n\n")[0].split())
        call = "" if m.is_property else "()"
        yield f"- {_code(m.path.split('.')[-1] + call)}: {_links(first)}"
    yield from ("", "</details>", "")


def markdown(doc: str) -> Iterator[str]:
    """A docstring as Markdown: its examples fenced, the pages that it names linked."""
    inside = False
    for line in doc.splitlines():
        starts = line.lstrip().startswith(">>> ")
        if starts and not inside:
            yield from ("", "```pycon")
        if inside and not line.strip():
            yield from ("```", "")
            inside = False
            continue
        inside = inside or starts
        yield line if inside else _links(line)
    if inside:
        yield "```"


def _links(text: str) -> str:
    return re.sub(r"docs/(\w+)\.md", lambda m: f"[{m[1].replace('_', ' ')}](/{m[1]}.md)", text)


def _code(text: str) -> str:
    return f"`{text}`" if "`" not in text else f"`` {text} ``"


def _plain(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _raised(name: Name) -> set[str]:
    """The errors that the body of a function raises itself."""
    if name.is_class or not callable(name.function):
        return set()
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(name.function)))
    except (OSError, TypeError, SyntaxError):
        return set()
    calls = (n.exc for n in ast.walk(tree) if isinstance(n, ast.Raise))
    return {
        c.func.id for c in calls if isinstance(c, ast.Call) and isinstance(c.func, ast.Name) and c.func.id in dir(suffice.errors)
    }


def file_of(name: Name) -> str:
    thing = name.thing if name.is_class else name.function
    return inspect.getsourcefile(thing) or "" if callable(thing) else str(PACKAGE / "formats" / "__init__.py")


def _place(name: Name) -> str:
    thing = name.thing if name.is_class else name.function
    line = inspect.getsourcelines(thing)[1]
    return f"src/suffice/{Path(file_of(name)).relative_to(PACKAGE)}, line {line}"


@cache
def _sources() -> dict[str, tuple[str, str]]:
    """The pages that show the library at work: their code and title."""
    found = {}
    for path in sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts and "reference" not in p.parts):
        text = path.read_text("utf-8")
        code = "\n".join(cell.source for cell in code_of(text))
        title = re.search(r"^# (.+)$", text, re.M)
        if code and title:
            found[str(path.relative_to(DOCS))] = (code, title[1])
    return found


def _pages_with(short: str) -> list[tuple[str, str]]:
    called = re.compile(
        rf"\b(?:sf|suffice)\.{re.escape(short)}\b|\b{'ef' if 'exponential.' in short else '$'}\.{short.split('.')[-1]}\b"
    )
    return [(page, title) for page, (code, title) in _sources().items() if called.search(code)]
