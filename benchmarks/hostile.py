"""How long 1 MB of hostile text keeps each reader busy: CSV, networks, graphs. The rule is 2 s; the widest CSV takes more."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import suffice as sf
from timing import SHARED  # noqa: F401 - silences notes

MEGA = 10**6
CSV = {
    "a million quotes": b"a,b\n" + b'"' * MEGA,
    "a million commas": b"," * MEGA,
    "one long word": b"x" * MEGA,
    "half a million rows": b"a\n" * (MEGA // 2),
    "a number of a million digits": b"a\n" + b"9" * MEGA,
    "70,000 columns": b",".join(b"c%d" % i for i in range(70_000)) + b"\n" + b",".join([b"1"] * 70_000) + b"\n",
}
TEXT = {
    "brackets": "(" * MEGA,
    "braces": "{" * MEGA,
    "quotes": '"' * MEGA,
    "comment": "/*" * (MEGA // 2),
    "words": "a " * (MEGA // 2),
}


def timed(what: str, work: Callable[[], object]) -> None:
    start = time.perf_counter()
    try:
        work()
        end = "read"
    except sf.SufficeError as error:
        end = "refused: " + re.sub(r"\S*/", "", str(error))[-60:]
    seconds = time.perf_counter() - start
    print(f"{what:40} {seconds:6.2f} s {'' if seconds <= 2 else 'OVER 2 s'}  {end}", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "rows.csv"
        for what, content in CSV.items():
            file.write_bytes(content)
            timed(f"schema of a CSV, {what}", lambda: sf.scan(file).schema)
        timed("fit of 2 of the 70,000 columns", lambda: sf.fit("c0 -> c1", file, prior=sf.NormalInverseGamma()))
        for suffix in ("bif", "xmlbif", "net", "dsc", "dsl", "uai", "json"):
            for what, text in TEXT.items():
                place = Path(name) / f"net.{suffix}"
                place.write_text(text)
                timed(f".{suffix} of {what}", lambda place=place: sf.read(place))
    for what, text in TEXT.items():
        timed(f"graph of {what}", lambda text=text: sf.Dag(text))


if __name__ == "__main__":
    main()
