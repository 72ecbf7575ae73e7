"""Numbers are the same bits for any number of threads, of ours or of linear algebra; and nearly so on another processor."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import suffice as sf

N = 20_000  # more than one block, and vectors that linear algebra would part among its threads


def chain(n: int, k: int) -> dict[str, Any]:
    x = np.random.default_rng(k).normal(size=(k, n))
    x[1:] += 0.5 * x[:-1]
    return {f"x{j}": row for j, row in enumerate(x)}


def holed(rows: dict[str, Any]) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    return {n: np.where(rng.random(len(x)) < 0.1, np.nan, x) for n, x in rows.items()}


def states(n: int) -> dict[str, Any]:
    a, b = np.random.default_rng(3).integers(0, 3, (2, n))
    return {"a": np.array(["u", "v", "w"])[a], "b": np.array(["u", "v", "w"])[(a + b // 2) % 3]}


def wide_gaussian(threads: int) -> Any:
    rows, k = chain(N, 101), 101
    dag = "; ".join(f"x{j} -> x{k - 1}" for j in range(k - 1))
    weighted = sf.scan(rows, weights=np.random.default_rng(1).uniform(size=N))
    return [bn[f"x{k - 1}"].coefficients for bn in (sf.fit(dag, rows), sf.fit(dag, weighted))]


def em_with_numbers(threads: int) -> Any:
    run = sf.em("x0 -> x1 -> x2", holed(chain(N, 3)), max_iter=2, threads=threads)
    return [run.objective, *(run.model[n].coefficients for n in run.model)]


def wide_mixture(threads: int) -> Any:
    run = sf.mixture(chain(N, 37), 2, sf.latent.Full(), starts=1, max_iter=2, threads=threads)
    return [run.log_likelihood, run.covariances]


def regressions(threads: int) -> Any:
    rows = chain(N, 8)
    level = np.clip(np.round(rows["x0"] + np.random.default_rng(2).normal(size=N)), -1, 1).astype(int) + 1
    data = sf.scan({**rows, "y": np.array(["low", "mid", "top"])[level]}, {"y": sf.Finite("y", ["low", "mid", "top"])})
    dag = "; ".join(f"{x} -> y" for x in rows)
    return [
        bn["y"].coefficients
        for bn in (sf.fit(dag, data, families={"y": f}) for f in (sf.Logistic(), sf.regressions.ProportionalOdds()))
    ]


def tables(threads: int) -> Any:
    rows = states(N)
    bn = sf.fit("a -> b", rows, prior=sf.BDeu(1))
    found = sf.search(rows, threads=threads)
    return [
        bn["b"].probs,
        bn.log_likelihood(),
        sf.information.entropy(rows),
        found.score,
        sf.information.project(rows, "a -> b").kl,
    ]


def draws(threads: int) -> Any:
    samples = sf.fit("x0 -> x1", chain(N, 2)).query("x0", {"x1": 1.0}, method=sf.methods.LikelihoodWeighting(N))
    return [samples.mean, samples.variance, samples.cdf(0.0), samples.effective_sample_size]


PUBLIC = [wide_gaussian, em_with_numbers, wide_mixture, regressions, tables, draws]


def flat(numbers: Any) -> Any:
    return np.concatenate([np.ravel(x) for x in numbers])


@pytest.mark.parametrize("numbers", PUBLIC)
def test_the_same_bits_for_any_number_of_threads(numbers: Callable[[int], Any]) -> None:
    with threadpool_limits(1, "blas"):
        one = flat(numbers(1))
    for threads in (2, 3):
        with threadpool_limits(threads, "blas"):
            np.testing.assert_array_equal(flat(numbers(threads)), one)


def test_another_processor_gives_the_same_up_to_rounding() -> None:
    """numpy's logarithms and sums are others with narrower vectors, and so are OpenBLAS's: the last digits may differ."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    wide = [f for f in __cpu_dispatch__ if __cpu_features__.get(f)]
    environment = {"NPY_DISABLE_CPU_FEATURES": " ".join(wide), "OPENBLAS_CORETYPE": "Prescott"}
    environment |= {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "OPENBLAS_NUM_THREADS": "1"}
    found = subprocess.run(
        [sys.executable, __file__], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    for numbers, there in zip(PUBLIC, json.loads(found.stdout), strict=True):
        here = flat(numbers(1))
        np.testing.assert_allclose(here, there, rtol=1e-7, atol=1e-10 * np.abs(here).max(), err_msg=numbers.__name__)


def test_as_many_threads_as_before() -> None:
    def n_threads() -> list[int]:
        return sorted(i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas")

    before = n_threads()
    inside = sf.scan(states(3)).fold(lambda batch: np.array([max(n_threads(), default=1)]))
    assert inside.tolist() == [1]
    assert n_threads() == before
    with pytest.raises(ZeroDivisionError):
        sf.scan(states(3)).fold(lambda batch: 1 / 0)
    assert n_threads() == before


NO_ALGEBRA = {
    "compare",
    "lag",
    "n_dags",
    "networks",
    "read",
    "read_conll",
    "read_tiers",
    "scan",
    "sequences",
    "shd",
    "table",
    "tables",
}
NO_ALGEBRA |= {"write", "writable", "path_of", "holds"}
NO_ALGEBRA |= {"report", "explore"}  # what these call is guarded


def test_every_public_function_is_guarded() -> None:
    """Who adds one that multiplies matrices decorates it by `one_blas_thread`."""
    topics = (sf, sf.chains, sf.constraints, sf.formats, sf.graphs, sf.independence, sf.information, sf.labels, sf.latent)
    topics += (sf.methods, sf.plates, sf.priors, sf.regressions, sf.undirected)
    functions = {n: f for topic in topics for n in topic.__all__ if inspect.isfunction(f := getattr(topic, n))}
    assert {n for n, f in functions.items() if not hasattr(f, "__wrapped__")} - {"load"} == NO_ALGEBRA


if __name__ == "__main__":
    print(json.dumps([flat(numbers(1)).tolist() for numbers in PUBLIC]))
