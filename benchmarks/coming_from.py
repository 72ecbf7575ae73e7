"""The tables of docs/coming_from, both sides run: what other programs give beside what we give.

python benchmarks/coming_from.py [pgmpy pyagrum ...]

Our lines run first, then theirs, in the same directory. Numbers are compared in order of size, since programs keep tables in
different orders of axes and states. A row that the page calls equal must be equal, one that it calls different must differ.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))

from building.cells import run  # noqa: E402
from building.side_by_side import peer_blocks, tasks, value_of  # noqa: E402

PEERS = {"pgmpy": "pgmpy", "pyagrum": "pyagrum", "causal_learn": "causallearn", "hmmlearn": "hmmlearn"}
"""Pages whose other side is Python of the extra `bench`, and what is imported there."""
MEANT = {"=": ("agree",), "≠": ("differ", "refused by them"), "≈": ("agree", "differ"), "": ("ran",)}
"""What may come of a row with each mark."""


def leaves(value: Any) -> Iterator[float | str]:
    """The numbers and words that a value consists of, whatever holds them."""
    if isinstance(value, (str, bytes)):
        yield str(value)
    elif isinstance(value, (bool, int, float, np.number, np.bool_)):
        yield float(value)
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif (held := held_by(value)) is not None:
        yield from leaves(held)
    elif hasattr(value, "__iter__"):
        for item in value:
            yield from leaves(item)
    elif value is not None:
        yield str(value)


def held_by(value: Any) -> Any:
    """The array or the pairs of a table, a distribution or a frame of either side."""
    for name in ("probs", "values", "toarray", "edges"):
        held = getattr(value, name, None)
        if held is not None and not isinstance(value, np.ndarray):
            return held() if callable(held) else held
    return value.tolist() if isinstance(value, np.ndarray) else None


def alike(ours: Any, theirs: Any) -> bool:
    a, b = list(leaves(ours)), list(leaves(theirs))
    words = [Counter(x for x in side if isinstance(x, str)) for side in (a, b)]
    numbers = [np.sort([x for x in side if not isinstance(x, str)]) for side in (a, b)]
    same = numbers[0].shape == numbers[1].shape and np.allclose(*numbers, rtol=1e-6, atol=1e-8, equal_nan=True)
    return words[0] == words[1] and bool(same)


def short(value: Any) -> str:
    found = [f"{x:.6g}" if isinstance(x, float) else x for x in leaves(value)]
    return " ".join(found[:6]) + (f" … ({len(found)})" if len(found) > 6 else "")


def compare(page: Path) -> Counter[str]:
    """Run both sides of a page, and print a line for each task; how often each verdict was given."""
    text, verdicts = page.read_text("utf-8"), Counter[str]()
    mine, other = run(text, page.name), {"__name__": "__main__"}
    for block in peer_blocks(text):
        value_of(block, other, page.name)
    for task in tasks(text):
        place = f"{page.name}:{task.line}"
        ours = value_of(task.ours, mine, place)
        try:
            theirs = value_of(task.theirs, other, place)
        except Exception:
            verdict, theirs = "refused by them", traceback.format_exc(limit=0).strip().splitlines()[-1]
        else:
            both = ours is not None and theirs is not None
            verdict = ("agree" if alike(ours, theirs) else "differ") if both else "ran"
        held = verdict in MEANT[task.mark]
        verdicts[verdict if held else "not as the page says"] += 1
        print(f"{verdict if held else 'NOT AS THE PAGE SAYS: ' + verdict:8} {task.line:4} {task.name}", file=sys.__stdout__)
        if verdict != "ran" and (verdict != "agree" or not held):
            print(f"{'':13} ours {short(ours)} | theirs {short(theirs)}", file=sys.__stdout__)
    return verdicts


def main() -> None:
    warnings.simplefilter("ignore")
    wrong = 0
    for name in sys.argv[1:] or PEERS:
        if find_spec(PEERS[name]) is None:
            print(f"{name}: not installed")
            continue
        print(f"== {name}", flush=True)
        with tempfile.TemporaryDirectory() as place, contextlib.chdir(place), contextlib.redirect_stdout(io.StringIO()):
            verdicts = compare(DOCS / "coming_from" / f"{name}.md")
        print(
            f"{name}: {sum(verdicts.values())} rows: {', '.join(f'{count} {word}' for word, count in sorted(verdicts.items()))}"
        )
        wrong += verdicts["not as the page says"]
    if wrong:
        raise SystemExit(f"{wrong} rows are not as their page says")


if __name__ == "__main__":
    os.environ.setdefault("TQDM_DISABLE", "1")
    main()
