"""All benchmarks, one after the other, or those that are named; `make bench` calls this. What they print is kept for the site."""

from __future__ import annotations

import sys

from recording import measure, record

SCRIPTS = [
    "cold_start.py",
    "fit.py",
    "gaussian.py",
    "sampling.py",
    "formats.py",
    "hostile.py",
    "data_frames.py",
    "data_files.py",
    "learning_curve.py",
    "structure.py",
    "mixed.py",
    "uncertainty.py",
    "inference.py",
    "intervals.py",
    "most_probable.py",
    "predict_files.py",
    "em.py",
    "mixture.py",
    "factors.py",
    "structural_em.py",
    "missing_cells.py",
    "glm.py",
    "glm_search.py",
    "calibration.py",
    "em_intervals.py",
    "forecasts.py",
    "sequences.py",
    "crf.py",
]

if __name__ == "__main__":
    for script in sys.argv[1:] or SCRIPTS:
        print(f"\n== {script}", flush=True)
        record({script: measure(script)})
