"""What the last `make bench` printed, on which machine, with which versions: kept in docs/last_benchmarks.json, of which the page
of benchmarks is drawn."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FILE = HERE.parent / "docs" / "last_benchmarks.json"
PACKAGES = [
    "suffice",
    "numpy",
    "scipy",
    "numba",
    "pyarrow",
    "duckdb",
    "pandas",
    "polars",
    "scikit-learn",
    "statsmodels",
    "pyagrum",
    "pgmpy",
    "causal-learn",
    "hmmlearn",
    "dynamax",
    "python-crfsuite",
]


def machine() -> dict[str, Any]:
    """Processor, memory, system and Python; never a name of the machine or a path on it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory": f"{memory:.0f} GiB",
        "system": platform.system(),
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def versions() -> dict[str, str]:
    """Of what is installed of the packages that are measured."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def measure(script: str) -> dict[str, Any]:
    """Run a script, showing what it prints as it comes; gives that, the seconds it took, and the load: of the minute before or,
    if that is higher, of its last minute."""
    load, start = os.getloadavg()[0], time.perf_counter()
    lines = []
    with subprocess.Popen([sys.executable, str(HERE / script)], stdout=subprocess.PIPE, text=True) as running:
        for line in running.stdout or ():
            print(line, end="", flush=True)
            lines.append(line.rstrip())
    if running.returncode:
        raise SystemExit(f"{script} ended with {running.returncode}")
    return {"seconds": round(time.perf_counter() - start, 1), "load": round(max(load, os.getloadavg()[0]), 1), "output": lines}


def record(results: dict[str, dict[str, Any]]) -> None:
    """Write what was measured, beside what an earlier run measured by other scripts of the same machine and versions."""
    about = {"machine": machine(), "versions": versions()}
    earlier = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    same = {key: earlier.get(key) for key in about} == about
    scripts = {**(earlier["scripts"] if same else {}), **results}
    day = datetime.now(UTC).date().isoformat()
    FILE.write_text(json.dumps({**about, "day": day, "scripts": scripts}, indent=1, ensure_ascii=False) + "\n", "utf-8")
