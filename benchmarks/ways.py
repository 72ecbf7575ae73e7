"""How many functions and files of the library run on the way of four calls: fit, search, em, predict.

python benchmarks/ways.py
"""

from __future__ import annotations

import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import suffice as sf

HOME = str(Path(sf.__file__).parent)


def way(call: Callable[[], Any]) -> tuple[int, int]:
    """The functions and the files that run, in any thread, when nothing is compiled or read for the first time."""
    call()
    seen: set[tuple[str, str]] = set()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(HOME):
            seen.add((frame.f_code.co_filename, frame.f_code.co_name))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return len(seen), len({file for file, _ in seen})


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    bn = sf.load("alarm")
    rows = bn.sample(2000, seed=0)
    frame, asia = rows.to_pandas(), sf.load("asia").sample(500, seed=0).to_pandas()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        pq.write_table(rows, path)
        hidden = [sf.Finite("h", ["a", "b"])]
        calls: dict[str, Callable[[], Any]] = {
            "fit": lambda: sf.fit(bn.dag, path, prior=sf.BDeu(1)),
            "search": lambda: sf.search(frame),
            "em": lambda: sf.em("h -> lung; h -> bronc; h -> smoke", asia, hidden=hidden, starts=2),
            "predict": lambda: bn.predict(frame, "HR"),
        }
        for name, call in calls.items():
            print("{:8} {:4} functions {:4} files".format(name, *way(call)))
