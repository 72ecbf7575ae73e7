"""Makes the files of statistics beside it from tables in ../shared, of which some are GPL: counts and moments, no rows. Run by
hand."""

from __future__ import annotations

import json
from pathlib import Path

import suffice as sf

HERE = Path(__file__).parent
TABLES = HERE.parents[2] / "shared" / "data" / "tables"
GRAPHS = {
    "learning.test": "[A][C][F][B|A][D|A:C][E|B:F]",
    "gaussian.test": "[A][B][E][G][C|A:B][D|B][F|A:D:E:G]",
    "clgaussian.test": "[A][B][C][H][D|A:H][F|B:C][E|B:D][G|A:D:E:F]",
    "asia": "[A][S][T|A][L|S][B|S][D|B:E][E|T:L][X|E]",
}


def data(name: str) -> sf.Data:
    levels = json.loads((TABLES / "levels.json").read_text())[name]
    declared = {c: sf.Finite(c, states) if states else sf.Real for c, states in levels.items()}
    return sf.scan(TABLES / f"{name}.csv.gz", variables=declared)


if __name__ == "__main__":
    for name, graph in GRAPHS.items():
        sf.gather(data(name), graph).save(HERE / f"{name}.stats")
    for name in ("gaussian.test.csv.gz", "iris.csv", "wine.csv"):
        rows = sf.scan(TABLES / name)
        reals = tuple(n for n, v in sorted(rows.schema.items()) if isinstance(v, sf.Real))
        rows.gather([sf.statistics.Request((), reals)]).save(HERE / f"{name.split('.csv')[0]}.moments.stats")
    for name in ("hair_eye_color.csv", "ucb_admissions.csv.gz", "titanic_persons.csv"):
        rows = sf.scan(TABLES / name)
        rows.gather([sf.statistics.Request(tuple(rows.columns))]).save(HERE / f"{name.split('.csv')[0]}.stats")
    sf.gather(data("asia"), sf.LogLinear.all(2, "ASTLBEXD")).save(HERE / "asia.pairs.stats")
