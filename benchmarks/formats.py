"""Reading munin, and every network of ../shared/data/networks, beside pyAgrum and pgmpy where they read BIF."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import suffice as sf
from timing import SHARED, line, seconds


def main() -> None:
    import pyagrum as gum
    from pgmpy.readwrite import BIFReader

    path = SHARED / "networks" / "munin.bif.gz"
    with tempfile.TemporaryDirectory() as name:
        plain = Path(name) / "munin.bif"
        plain.write_bytes(gzip.decompress(path.read_bytes()))
        theirs = seconds(lambda: gum.loadBN(str(plain)), 3)
        slow = seconds(lambda: BIFReader(str(plain)).get_model(), 1, warm=0)
        line("read munin.bif", seconds(lambda: sf.read(plain), 3), 2.0, pyAgrum=theirs, pgmpy=slow)
    total = seconds(lambda: [sf.read(p) for p in sorted((SHARED / "networks").iterdir())], 1, warm=0)
    print(f"read all {len(list((SHARED / 'networks').iterdir()))} networks: {total:.2f} s")


if __name__ == "__main__":
    main()
