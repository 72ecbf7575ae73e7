"""All benchmarks, one after the other; `make bench` calls this."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
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
    for script in SCRIPTS:
        print(f"\n== {script}", flush=True)
        subprocess.run([sys.executable, str(HERE / script)], check=True)
