"""What gives the same answer outside the explorer, in Python and as a command; and the words of scores, methods and priors that
the page offers."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from suffice.basis.registry import every, find, look_up, words
from suffice.errors import SufficeError

_PLAIN = re.compile(r"[A-Za-z_][\w.]*|\d[\w.]*", re.ASCII)
_NAME = re.compile(r"\b([A-Z]\w*)\(")

Code = dict[str, str | None]

EVIDENCE = ("bdeu:1", "k2", "bge")
"""Priors whose evidence is offered as a score."""


@dataclass(frozen=True)
class Origin:
    """Where a model or a table comes from, in Python and on the command line.

    `python` are the statements that make it, the last one `NAME = …`; `word` is what commands call it, None if they cannot, and
    `commands` what makes it first.
    """

    python: str
    word: str | None
    commands: tuple[str, ...] = ()
    flags: str = ""
    """Options that a table is read with."""

    def code(self, statements: str, command: str | None = None, *others: Origin) -> Code:
        """Statements after those that make this and others, and a command with its own name first after the word."""
        begun = dict.fromkeys(line for origin in (self, *others) for line in origin.python.splitlines())
        python = "\n".join(["import suffice as sf", "", *begun, statements])
        if command is None or self.word is None:
            return {"python": python, "command": None}
        before = dict.fromkeys(line for origin in (self, *others) for line in origin.commands)
        return {"python": python, "command": "\n".join([*before, command])}

    @property
    def shell(self) -> str:
        """The word as a shell takes it."""
        return shlex.quote(self.word or "")


def call(name: str, *positional: str, **named: Any) -> str:
    """A call as text; what is None or empty is left out."""
    words = [*positional, *(f"{key}={value!r}" for key, value in named.items() if value not in (None, {}, [], ()))]
    return f"{name}({', '.join(words)})"


def word(text: str) -> str:
    """A name or a state as questions of the command line have it."""
    if _PLAIN.fullmatch(text):
        return text
    inside = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{inside}"'


def settings(values: Mapping[str, Any]) -> str:
    """Evidence as questions of the command line have it."""
    return ", ".join(f"{word(name)}={_value(value)}" for name, value in values.items())


def _value(value: Any) -> str:
    if isinstance(value, str):
        return word(value)
    return repr([float(x) for x in value]) if isinstance(value, Sequence) else repr(value)


def options(**given: Any) -> str:
    """Options of a command; each value once, of lists each of them."""
    result = ""
    for name, value in given.items():
        for one in value if isinstance(value, list) else [] if value is None else [value]:
            result += f" --{name.replace('_', '-')} {shlex.quote(str(one))}"
    return result


def in_csv(names: Sequence[str]) -> str:
    """Names as options list them."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def choices() -> dict[str, list[dict[str, str]]]:
    """What the registry has, each with the first sentence that is said of it."""
    evidence = [{"word": word, "text": f"the evidence under {found_prior(word)!r}"} for word in EVIDENCE]
    priors = [{"word": "mle", "text": "no prior: maximum likelihood"}, *_word_list("priors")]
    return {"scores": [*_word_list("scores"), *evidence], "methods": _word_list("methods"), "priors": priors}


def _word_list(kind: str) -> list[dict[str, str]]:
    """Those that need nothing said besides."""
    told = []
    for word in words(kind):
        piece = find(kind, word)
        try:
            piece.of_word(word, {})
        except SufficeError:
            continue
        first = " ".join((piece.__doc__ or "").split("\n\n")[0].split())
        told.append({"word": word, "text": re.split(r"(?<=[.;:])\s", first)[0].rstrip(".;:")})
    return told


def score_of(word: str | None) -> Any:
    """A score, or the evidence under a prior."""
    if not word:
        return None
    piece = find("scores", word.partition(":")[0])
    if piece is not None:
        return piece.of_word(word, {})
    from suffice.objectives.scores import Evidence

    return Evidence(found_prior(word))


def found_prior(word: str) -> Any:
    """A prior by its word."""
    name = word.partition(":")[0]
    return look_up("priors", name, f"the score or prior {word!r}").of_word(word, {})


def method_of(word: str | None, max_parents: int | None) -> Any:
    """A method of search, with its own maximum of parents if it has one."""
    if not word and max_parents is None:
        return None
    piece = look_up("methods", (word or "orders").partition(":")[0], f"the method {word!r}")
    takes = "max_parents" in getattr(piece, "__dataclass_fields__", {})
    if max_parents is not None and not takes:
        raise SufficeError(f"the method {word} has no maximum of parents: leave it out")
    return piece.of_word(word or "orders", {} if max_parents is None else {"max_parents": max_parents})


def python_of(value: Any) -> str:
    """A value as Python has it after `import suffice as sf`."""
    from suffice.structure.results.plan import in_words

    kinds = ("methods", "priors", "scores")
    homes = {piece.__name__.removesuffix("Prior"): kind for kind in kinds for piece in every(kind).values()}
    homes |= {"Evidence": "scores", "EBIC": "choices"}

    def home(match: re.Match[str]) -> str:
        return f"sf.{homes[match[1]]}.{match[1]}(" if match[1] in homes else match[0]

    return _NAME.sub(home, in_words(value) if getattr(value, "listed_in", "") == "methods" else repr(value))
