"""How many functions and files of the library run on the way of some calls, and how deep they are nested: fit, search, em,
predict, a query with an interval, and `suffice fit --family`.

All functions are counted, private ones and properties, too; frames of comprehensions and lambdas are no functions. Kernels are
compiled for it, so that what is counted does not depend on which of them were so before.

python benchmarks/ways.py              a line for each call
python benchmarks/ways.py command em   and which functions these are, room by room, for the calls that are named
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

os.environ["SUFFICE_COMPILE"] = "now"

import suffice as sf

HOME = str(Path(sf.__file__).parent)


def way(call: Callable[[], Any]) -> tuple[set[tuple[str, str]], int]:
    """The functions that run, in any thread, when nothing is compiled or read for the first time, each with its file; and how
    many functions of the library, each called by the one before, lead to the innermost."""
    call()
    seen: set[tuple[str, str]] = set()
    deepest = [0]

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(HOME) and frame.f_code.co_name[0] != "<":
            seen.add((frame.f_code.co_filename.removeprefix(HOME + os.sep), frame.f_code.co_name))
            depth = 0
            while frame is not None:
                depth += frame.f_code.co_filename.startswith(HOME) and frame.f_code.co_name[0] != "<"
                frame = frame.f_back
            deepest[0] = max(deepest[0], depth)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return seen, deepest[0]


def command(*words: str) -> None:
    """A command of `suffice`, in this process."""
    from suffice.interfaces.cli.app import app

    with redirect_stderr(io.StringIO()):
        app(list(words), standalone_mode=False)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    bn = sf.load("alarm")
    rows = bn.sample(2000, seed=0)
    frame, asia = rows.to_pandas(), sf.load("asia").sample(500, seed=0).to_pandas()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        pq.write_table(rows, path)
        hidden = [sf.Finite("h", ["a", "b"])]
        known = sf.fit(sf.load("asia").dag, asia, prior=sf.BDeu(1))
        rows_of_numbers, model = str(Path(folder) / "numbers.csv"), str(Path(folder) / "model.json")
        text = "".join(f"{(7 * i) % 13 / 2},{'no' if (i * i) % 7 < 3 else 'yes'}\n" for i in range(200))
        Path(rows_of_numbers).write_text("x,y\n" + text)
        calls: dict[str, Callable[[], Any]] = {
            "fit": lambda: sf.fit(bn.dag, path, prior=sf.BDeu(1)),
            "search": lambda: sf.search(frame),
            "em": lambda: sf.em("h -> lung; h -> bronc; h -> smoke", asia, hidden=hidden, starts=2),
            "predict": lambda: bn.predict(frame, "HR"),
            "query": lambda: known.query("dysp", {"smoke": "yes"}, interval=0.95),
            "command": lambda: command("fit", "x -> y", rows_of_numbers, "-o", model, "--family", "y=logistic"),
        }
        for name, call in calls.items():
            functions, deep = way(call)
            print(f"{name:8} {len(functions):4} functions {len({file for file, _ in functions}):4} files {deep:3} deep")
            for file in sorted({file for file, _ in functions}) if name in sys.argv else ():
                print(f"    {file}:", *sorted(function for at, function in functions if at == file))
