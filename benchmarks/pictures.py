"""Pictures: crossings, edges through boxes, and the time that layouts take, beside what was asked for.

    python benchmarks/pictures.py [NETWORK ...]

Processor time of one call, after one that loads what is needed. Exit 1 where a figure is not reached.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import suffice as sf
from suffice.basis.output.display import text_table
from suffice.basis.pictures import Picture
from suffice.basis.pictures.arrangement import lay_out
from suffice.basis.pictures.layout import Layout
from suffice.basis.pictures.shapes import shapes_of, size_of

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.basis.crossings import crossings

CROSSINGS = {"alarm": 8, "insurance": 25, "hailfinder": 6}
SECONDS = {"alarm": 0.05, "munin": 5.0}


def layout_of(picture: Picture) -> Layout:
    by_name = {node.name: node for node in picture.nodes}
    place = {name: i for i, name in enumerate(picture.order)}
    above: dict[str, list[str]] = {name: [] for name in place}
    for edge in picture.edges:
        first, last = sorted((edge.tail, edge.head), key=place.__getitem__)
        above[last].append(first)
    return lay_out({name: size_of(by_name[name]) for name in place}, {name: sorted(p) for name, p in above.items()})


def timed(f: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    value = f()
    return value, time.process_time() - start


HEADER = ["network", "nodes", "crossings", "through boxes", "with bars", "layout ms", "focus view ms", "same bytes"]


def measured(name: str) -> tuple[list[object], bool]:
    """A line of the table, and whether all is as it should be."""
    bn = sf.load(name)
    plain = bn.dag.picture()
    at, seconds = timed(lambda: layout_of(plain))
    _, near = timed(lambda: shapes_of(bn.dag.picture(focus=bn.nodes[0])))
    through, few = len(at.collisions()), len(bn.dag) <= 100
    crossed = crossings(at) if few else 0
    barred = len(layout_of(bn.picture(interval=None)).collisions()) if few else 0
    same = not few or plain.svg() == sf.load(name).dag.picture().svg()
    good = crossed <= CROSSINGS.get(name, crossed) and seconds <= SECONDS.get(name, seconds)
    line = [name, len(bn.dag), crossed if few else "", through, barred if few else "", round(1e3 * seconds), round(1e3 * near)]
    return [*line, "yes" if same else "no"], good and same and not through and not barred


def main(names: list[str]) -> int:
    sf.Dag("a -> b").picture().svg()
    lines = [measured(name) for name in names]
    print(text_table(HEADER, [line for line, _ in lines]))
    for line, good in lines:
        if not good:
            print(f"{line[0]}: a figure is not reached")
    return int(not all(good for _, good in lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["asia", "alarm", "insurance", "hailfinder", "munin"]))
