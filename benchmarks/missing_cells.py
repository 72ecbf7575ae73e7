"""Rows with missing cells: drawn, weighed and reported on; figures without a peer's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import suffice as sf
from suffice.models.rows.posteriors import log_prob_in_rows, shown_rows
from suffice.recipes.missing.missingness import missingness
from timing import line, seconds


def main() -> None:
    alarm = sf.load("alarm")
    rows = with_gaps(alarm.sample(10_000, seed=1), 0.1)
    line("ALARM, 10,000 rows, 10 % missing: impute, 5 draws", seconds(lambda: alarm.impute(rows, draws=5)), 5.0)
    line("… ln p(observed cells) of each row", seconds(lambda: log_prob_in_rows(alarm, shown_rows(alarm, rows))))
    many = sf.scan(with_gaps(alarm.sample(1_000_000, seed=1), 0.05))
    line("ALARM, 1,000,000 rows, 5 % missing, scanned: missingness", seconds(lambda: missingness(many), 1))
    rng = np.random.default_rng(0)
    x = np.where(rng.random((1_000_000, 8)) < 0.05, np.nan, rng.standard_normal((1_000_000, 8)))
    numbers = sf.scan({f"x{i}": x[:, i] for i in range(8)})
    line(
        "8 columns of 1,000,000 numbers, 5 % missing, scanned: missingness with Little's test",
        seconds(lambda: missingness(numbers), 1),
    )


def with_gaps(table: pa.Table, share: float) -> pa.Table:
    """The same rows with cells missing completely at random."""
    rng = np.random.default_rng(0)
    columns = {}
    for name in table.column_names:
        cells = table[name].combine_chunks()
        codes = pa.array(cells.indices.to_numpy(), mask=rng.random(table.num_rows) < share)
        columns[name] = pa.DictionaryArray.from_arrays(codes, cells.dictionary)
    return pa.table(columns)


if __name__ == "__main__":
    main()
