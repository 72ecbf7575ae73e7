"""Generalised linear models beside scikit-learn and statsmodels on the same rows in the same run, and out of core.

    python benchmarks/glm.py [small]

1,000,000 rows of 20 numbers: logistic, Poisson and gamma (log link) regression; 200,000 rows of five states: softmax. A time is
the median of warm runs on rows that are in memory; reading them in (`scan`) is its own line. The peers are scikit-learn's
newton-cholesky at its own tolerance (its coefficients are compared at a sharper one) and statsmodels' GLM.

Then 50,000,000 rows of 8 numbers and a state in a Parquet file, fitted from the file in a process of its own: seconds, passes,
and memory by /proc/self/status: RssAnon, what the process itself holds, the largest of samples every 50 ms; VmHWM, the most that
was ever resident, with the pages of mapped files (libraries). The encoded columns are spilled to a file that is read, not mapped:
what of it the system keeps in its page cache is in neither number, and is dropped when others need it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import suffice as sf
from suffice.learning.complete.irls import fit_regression
from timing import line, seconds

COLUMNS, OUT_OF_CORE = 20, 8


def rows(n: int, p: int, seed: int = 0) -> tuple[Any, Any]:
    """Standard normal columns and a linear predictor of variance 1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, X @ rng.normal(0, 1 / np.sqrt(p), p) - 0.5


def scanned(X: Any, y: Any, variable: Any) -> Any:
    columns = {f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(X.shape[1])}
    data = sf.scan({**columns, "y": y}, variables={"y": variable})
    _ = data.missing  # reads the columns
    return data


def ours(data: Any, family: Any) -> Any:
    parents = [data.schema[n] for n in data.columns if n != "y"]
    return fit_regression(data.schema["y"], parents, data, family)


def statsmodels(X: Any, y: Any, family: Any) -> Any:
    import statsmodels.api as sm

    return sm.GLM(y, sm.add_constant(X), family=family).fit()


def compared(
    what: str, X: Any, y: Any, variable: Any, family: Any, peers: dict[str, Any], target: float | None, repeats: int
) -> None:
    """Times of a fit, and how far the coefficients are apart; a peer is (fit, its coefficients by a sharper one, if any)."""
    reading = seconds(lambda: scanned(X, y, variable), repeats=3)
    data = scanned(X, y, variable)
    own = seconds(lambda: ours(data, family), repeats=max(repeats, 3))
    times, apart = {}, []
    cpd = ours(data, family)
    for name, (fit, sharper) in peers.items():
        times[name] = seconds(fit, repeats=1 if name == "statsmodels" else repeats, warm=0)
        found = fit().params[1:] if sharper is None else sharper()
        apart.append(f"{name} {np.abs(np.ravel(cpd.coefficients) - np.ravel(found)).max():.1e}")
    line(what, own, target, **times)
    words = "; ".join(apart)
    print(f"    {cpd.fitted.iterations} passes; scan {reading:.3g} s; largest difference of a coefficient: {words}", flush=True)


def logistic(n: int, repeats: int) -> None:
    import statsmodels.api as sm
    from sklearn.linear_model import LogisticRegression

    X, eta = rows(n, COLUMNS)
    y = (np.random.default_rng(1).random(n) < 1 / (1 + np.exp(-eta))).astype(int)

    def learn(tol: float = 1e-4) -> Any:
        return LogisticRegression(C=np.inf, solver="newton-cholesky", tol=tol).fit(X, y)

    peers = {
        "scikit_learn": (learn, lambda: learn(1e-10).coef_),
        "statsmodels": (lambda: statsmodels(X, y, sm.families.Binomial()), None),
    }
    compared(f"logistic, {n:,} x {COLUMNS}", X, y, sf.Finite("y", ["0", "1"]), sf.Logistic(), peers, 0.5, repeats)


def poisson(n: int, repeats: int) -> None:
    import statsmodels.api as sm
    from sklearn.linear_model import PoissonRegressor

    X, eta = rows(n, COLUMNS)
    y = np.random.default_rng(1).poisson(np.exp(eta)).astype(float)

    def learn(tol: float = 1e-4) -> Any:
        return PoissonRegressor(alpha=0, solver="newton-cholesky", tol=tol).fit(X, y)

    peers = {
        "scikit_learn": (learn, lambda: learn(1e-10).coef_),
        "statsmodels": (lambda: statsmodels(X, y, sm.families.Poisson()), None),
    }
    compared(f"Poisson, {n:,} x {COLUMNS}", X, y, sf.Count("y"), sf.regressions.PoissonLog(), peers, 0.5, repeats)


def gamma(n: int, repeats: int) -> None:
    from sklearn.linear_model import GammaRegressor

    X, eta = rows(n, COLUMNS)
    y = np.random.default_rng(1).gamma(2.0, np.exp(eta) / 2.0)

    def learn(tol: float = 1e-4) -> Any:
        return GammaRegressor(alpha=0, solver="newton-cholesky", tol=tol).fit(X, y)

    peers = {"scikit_learn": (learn, lambda: learn(1e-10).coef_)}
    compared(f"gamma (log), {n:,} x {COLUMNS}", X, y, sf.Real("y"), sf.regressions.GammaLog(), peers, None, repeats)


def softmax(n: int, repeats: int) -> None:
    from sklearn.linear_model import LogisticRegression

    X, _ = rows(n, COLUMNS)
    B = np.random.default_rng(2).normal(0, 1 / np.sqrt(COLUMNS), (COLUMNS, 5))
    y = np.argmax(X @ B + np.random.default_rng(1).gumbel(size=(n, 5)), axis=1)

    def learn(tol: float = 1e-4) -> Any:
        return LogisticRegression(C=1e12, solver="newton-cholesky", tol=tol).fit(X, y)

    def found() -> Any:
        coefficients = learn(1e-10).coef_
        return (coefficients - coefficients[0])[1:]

    states, peers = sf.Finite("y", [str(k) for k in range(5)]), {"scikit_learn": (learn, found)}
    compared(f"softmax of 5 states, {n:,} x {COLUMNS}", X, y, states, sf.Logistic(), peers, None, repeats)


def write_parquet(path: Path, n: int, piece: int = 1_000_000) -> None:
    """The rows of a logistic regression with the coefficients 0.1, 0.2, …, in pieces."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([*((f"x{j}", pa.float32()) for j in range(OUT_OF_CORE)), ("y", pa.bool_())])
    b = 0.1 * (1 + np.arange(OUT_OF_CORE))
    with pq.ParquetWriter(path, schema, compression="none") as writer:
        for start in range(0, n, piece):
            rng = np.random.default_rng([7, start])
            X = rng.standard_normal((OUT_OF_CORE, min(piece, n - start)), dtype=np.float32)
            y = rng.random(X.shape[1]) < 1 / (1 + np.exp(0.5 - b @ X))
            writer.write_table(pa.table([*map(pa.array, X), pa.array(y)], schema=schema))


def status(name: str) -> float:
    """A number of /proc/self/status, in MiB."""
    for text in Path("/proc/self/status").read_text().splitlines():
        if text.startswith(name):
            return float(text.split()[1]) / 1024
    return float("nan")


def out_of_core(path: str, limit: str) -> None:
    """Fit from a file with so many bytes of memory for columns, and say what it took."""
    largest, stop = [status("RssAnon")], threading.Event()

    def watch() -> None:
        while not stop.wait(0.05):
            largest[0] = max(largest[0], status("RssAnon"))

    threading.Thread(target=watch, daemon=True).start()
    before = largest[0]
    start = time.perf_counter()
    data = sf.scan(path, memory_limit=int(limit))
    n = data.n_rows
    _ = data.missing
    read = time.perf_counter() - start
    cpd = ours(data, sf.Logistic())
    took = time.perf_counter() - start
    stop.set()
    worst = np.abs(cpd.coefficients[0] - 0.1 * (1 + np.arange(OUT_OF_CORE))).max()
    print(
        f"{n:,} x {OUT_OF_CORE} from Parquet: {took:.3g} s (reading and spilling {read:.3g} s, {cpd.fitted.iterations} passes); "
        f"RssAnon {before:.0f} -> {largest[0]:.0f} MiB, VmHWM {status('VmHWM'):.0f} MiB; "
        f"largest error of a coefficient {worst:.1e} (standard error {cpd.standard_errors.max():.1e})",
        flush=True,
    )


def main(small: bool) -> None:
    n, repeats = (200_000, 3) if small else (1_000_000, 5)
    logistic(n, repeats)
    poisson(n, repeats)
    gamma(n, repeats)
    softmax(n // 5, repeats)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_parquet(path, 2_000_000 if small else 50_000_000)
        subprocess.run([sys.executable, __file__, "out_of_core", str(path), str(2**20)], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["out_of_core"]:
        out_of_core(*sys.argv[2:])
    else:
        main("small" in sys.argv[1:])
