"""Names of the library in the text of pages: those that do not exist are told, the others lead to their entries.

What can be checked is what is written out: `sf.fit`, `suffice.priors.BDs`, questions of what pages call `bn`, `found`, `run`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import suffice
from building.cells import cells_of
from building.public import public_names

FRONT = re.compile(r"`(?:sf|suffice)\.([A-Za-z_][\w.]*)[^`]*`")
ASKED = re.compile(r"`(bn|found|chain|net|crf|dag|run|data)\.(?!py\b)([a-z_]\w*)[^`]*`")
HOLDERS = {
    "bn": "BayesNet",
    "found": "results.Found",
    "chain": "Chain",
    "net": "MarkovNet",
    "crf": "Crf",
    "dag": "Dag",
    "run": "results.EmRun",
    "data": "Data",
}
"""What pages call things, and what they are."""
RUNS = ("results.EmRun", "results.MixtureRun", "results.HmmRun", "results.FactorsRun", "results.StructuralRun", "results.RbmRun")


def unknown_names(page: str) -> Iterator[tuple[int, str]]:
    """The names of the library that the text of a page has and the library has not, each with its line."""
    for cell in cells_of(page):
        if cell.kind != "text":
            continue
        for number, line in enumerate(cell.source.splitlines()):
            for found in FRONT.finditer(line):
                if not _exists(found[1].rstrip(".")):
                    yield cell.line + number, f"suffice.{found[1]}"
            for found in ASKED.finditer(line):
                if not _has(found[1], found[2]):
                    yield cell.line + number, f"{found[1]}.{found[2]}"


@cache
def _exists(path: str) -> bool:
    thing: Any = suffice
    for word in path.split("."):
        if thing is suffice and word in (*suffice.__all__, *suffice._MODULES.split()):
            thing = getattr(suffice, word)
        elif not _member(thing, word):
            return False
        else:
            thing = getattr(thing, word, None)
    return True


def _has(holder: str, word: str) -> bool:
    kinds = RUNS if holder == "run" else (HOLDERS[holder],)
    return any(_member(public_names()[kind].thing, word) for kind in kinds)


def _member(thing: Any, word: str) -> bool:
    return (
        hasattr(thing, word)
        or any(word in vars(c).get("__annotations__", ()) for c in getattr(thing, "__mro__", ()))
        or word in getattr(thing, "__dataclass_fields__", ())
    )


@cache
def targets() -> dict[str, str]:
    """How names are written in text, and the full name of the entry each leads to."""
    known: dict[str, str] = {}
    for short, name in public_names().items():
        full = f"{name.module}.{name.path}"
        for written in {short, name.path, f"sf.{short}", f"suffice.{short}"}:
            known.setdefault(written, full)
    return known


PLAIN = {
    "fit",
    "em",
    "search",
    "learn",
    "scan",
    "gather",
    "bootstrap",
    "cross_validate",
    "structural_em",
    "order_mcmc",
    "missingness",
}
"""Lower-case names that are also linked where they stand without `sf.` and without a bracket: they are no words of arguments."""


def target_of(text: str) -> str | None:
    """The entry that a piece of code in a text leads to.

    >>> target_of("BDeu(10)"), target_of("score"), target_of("sf.priors.BDs")
    ('suffice.BDeu', None, 'suffice.priors.BDs')
    """
    found = re.fullmatch(r"([A-Za-z_][\w.]*)(\(.*\))?", text, re.S)
    if not found:
        return None
    written = found[1]
    known = written[0].isupper() or "." in written or found[2] or written in PLAIN
    return targets().get(written) if known else None
