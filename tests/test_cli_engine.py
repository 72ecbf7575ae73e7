"""Where rows are worked on, as the command line says it."""

from __future__ import annotations

from pathlib import Path

import suffice as sf


def test_engines_give_the_same_model(run, tmp_path: Path) -> None:
    rows = sf.load("asia").sample(2_000, seed=1)
    Path("rows.csv").write_text("\n".join([",".join(rows.column_names), *(",".join(r.values()) for r in rows.to_pylist())]))
    texts = []
    for engine in ("memory", "files"):
        code, _, _ = run("fit", "asia", "rows.csv", "--engine", engine, "-o", f"{engine}.json")
        assert code == 0
        texts.append(Path(f"{engine}.json").read_text())
    assert texts[0] == texts[1]


def test_unknown_engines_are_refused(run) -> None:
    Path("rows.csv").write_text("a,b\n1,2\n")
    code, _, err = run("score", "asia", "rows.csv", "--engine", "cluster")
    assert code == 1
    assert "--engine is memory, files, spark or spark:MASTER, not 'cluster'" in err
