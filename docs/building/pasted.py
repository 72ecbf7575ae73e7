"""Pastes the blocks of each page into a fresh interpreter, in order, and looks whether that gives what the site shows.

python -m building.pasted docs/_build/cells [words of a page]

The site keeps what its kernel gave as notebooks. Here each runs again in a Python process of its own, without IPython, in an
empty directory. Values and printed lines are compared, without times of runs and ends of lines.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

TIMES = re.compile(
    r"\d[\d.,e+-]*\s?(?:ns|µs|ms|s|min|seconds)\b|127\.0\.0\.1:\d+\S*|0x[0-9a-f]+|^seconds .*$|^process .*$", re.MULTILINE
)
SECONDS = re.compile(r"^(.* seconds\n.*\n)((?:.*\S.*\n?)+)", re.MULTILINE)
"""A table whose last column has seconds."""
STUCK = 900
"""Seconds after which a page hangs; the longest takes some twenty."""
COLOURS = re.compile(r"\x1b\[[\d;]*m")


def shown(notebook: Path) -> list[str]:
    """What each cell of an executed notebook printed and ended with."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    return [_shown(cell["outputs"]) for cell in cells if cell["cell_type"] == "code"]


def _shown(outputs: list[dict[str, Any]]) -> str:
    texts = [o["text"] for o in outputs if o["output_type"] == "stream" and o["name"] == "stdout"]
    texts += [o["data"]["text/plain"] for o in outputs if o["output_type"] == "execute_result"]
    return "".join("".join(text) for text in texts)


def pasted(cells: list[dict[str, Any]]) -> Iterator[str]:
    """What each cell prints and ends with in this interpreter."""
    space: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            try:
                _paste("".join(cell["source"]), space)
            except Exception:
                if "raises-exception" not in cell["metadata"].get("tags", []):
                    raise
        yield out.getvalue()


def _paste(source: str, space: dict[str, Any]) -> None:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<pasted>", "exec"), space)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), "<pasted>", "eval"), space)
        if value is not None and not source.rstrip().endswith(";"):
            print(repr(value))


def alike(one: str, other: str) -> bool:
    """Whether two outputs are the same, but for times of runs, and where lines are broken.

    >>> alike("(1,\\n 2)", "(1, 2)"), alike("in 0.3 s", "in 0.25 s"), alike("0.3", "0.25")
    (True, True, False)
    >>> alike("a  seconds\\n─  ───────\\nx  0.1\\n", "a  seconds\\n─  ───────\\nx  0.2\\n")
    True
    """
    return _plain(one) == _plain(other)


def _plain(text: str) -> str:
    text = SECONDS.sub(lambda table: table[1] + re.sub(r" \S+$", "", table[2], flags=re.MULTILINE), text)
    return re.sub(r"\s+|─+|,(?=\s*[)\]}])", "", TIMES.sub("…", COLOURS.sub("", text)))


def differences(notebook: Path) -> Iterator[str]:
    """The cells of a notebook that give something else when they are pasted."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, str(Path(__file__)), "--paste", str(notebook.resolve())]
        try:
            run = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False, timeout=STUCK)
        except subprocess.TimeoutExpired:
            yield f"{notebook}: did not end within {STUCK} s"
            return
    if run.returncode:
        yield f"{notebook}: {run.stderr.strip().splitlines()[-1]}"
        return
    for number, (site, here) in enumerate(zip(shown(notebook), json.loads(run.stdout), strict=True)):
        if not alike(site, here):
            yield f"{notebook.parent.name}, cell {number}:\n  the site shows\n{site}\n  pasted\n{here}"


def main() -> None:
    place, *words = sys.argv[1:]
    if place == "--paste":
        warnings.simplefilter("ignore")
        with contextlib.suppress(ImportError):
            import pandas as pd

            pd.set_option("display.max_columns", 20)  # as in a notebook; a terminal shows as many as fit
        cells = json.loads(Path(words[0]).read_text("utf-8"))["cells"]
        told = list(pasted([cell for cell in cells if cell["cell_type"] == "code"]))
        print(json.dumps(told))
        return
    from building.sources import fingerprint

    kept = sorted(Path(place, fingerprint()).rglob("*.ipynb"))
    notebooks = [path for path in kept if all(word in path.read_text("utf-8") for word in words)]
    found = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # each page has a process of its own
        for told in chain.from_iterable(pool.map(lambda notebook: list(differences(notebook)), notebooks)):
            print(told, end="\n\n", flush=True)
            found.append(told)
    print(f"{len(notebooks)} pages pasted, {len(found)} cells give something else than the site")
    if found or not notebooks:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
