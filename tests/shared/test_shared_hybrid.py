"""Gaussian and mixed networks of the shared test material: answers against dense Gaussians in every finite configuration.

Run by `make reference`; it needs the folder ../shared, or the one that SUFFICE_SHARED names.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.inference.rows import RowEvidence
from suffice.models.rows.posteriors import by_densities
from tests.hybrid_oracles import finite_posterior, gaussian, probability, real_moments

SHARED = Path(os.environ.get("SUFFICE_SHARED", Path(__file__).parents[3] / "shared")) / "data"
NETWORKS = sorted(path.name for path in (SHARED / "networks").glob("*.json"))


def some_of(bn: sf.BayesNet, seed: int, share: float = 0.3) -> dict[str, Any]:
    rng, row = np.random.default_rng(seed), bn.sample(1, seed=seed).to_pylist()[0]
    return {n: row[n] for n in bn.variables if rng.random() < share}


@pytest.mark.parametrize("name", NETWORKS)
def test_answers_equal_enumeration(name: str) -> None:
    bn = sf.read(SHARED / "networks" / name)
    for seed in range(3):
        known = some_of(bn, seed)
        assert bn.log_prob_of(known) == pytest.approx(np.log(probability(bn, known)), rel=1e-8)
        every = bn.marginals(known)
        reals = [n for n in bn.compiled.reals if n not in known]
        mean, covariance = real_moments(bn, reals, known)
        np.testing.assert_allclose([every[n].mean for n in reals], mean, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose([every[n].variance for n in reals], np.diag(covariance), rtol=1e-5)
        some = bn.query(reals[:4], known)
        np.testing.assert_allclose(some.covariance, covariance[:4, :4], rtol=1e-5, atol=1e-7)
        for n in bn.compiled.finite:
            if n not in known:
                for (state,), p in finite_posterior(bn, [n], known).items():
                    assert every[n][state] == pytest.approx(p, rel=1e-8, abs=1e-12)
                    assert bn.query(n, known)[state] == pytest.approx(p, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("name", NETWORKS)
def test_rows_equal_queries(name: str) -> None:
    bn = sf.read(SHARED / "networks" / name)
    compiled, rng = bn.compiled, np.random.default_rng(1)
    table = bn.sample(20, seed=2).to_pylist()
    codes = np.array([[bn.variables[v].code(row[v]) for v in compiled.finite] for row in table], np.int32).reshape(20, -1)
    reals = np.array([[row[x] for x in compiled.reals] for row in table])
    codes, reals = np.where(rng.random(codes.shape) < 0.5, -1, codes), np.where(rng.random(reals.shape) < 0.5, np.nan, reals)
    for target in [*compiled.finite[:2], *compiled.reals[::9]]:
        found = by_densities(bn, target, RowEvidence(codes, reals))
        for i in range(len(table)):
            known: dict[str, Any] = {n: table[i][n] for j, n in enumerate(compiled.finite) if codes[i, j] >= 0}
            known |= {n: table[i][n] for j, n in enumerate(compiled.reals) if not np.isnan(reals[i, j])}
            known.pop(target, None)
            answer = bn.query(target, known)
            expected = answer.probs if target in compiled.index else [answer.mean, answer.variance]
            np.testing.assert_allclose(found[i], expected, rtol=1e-8, atol=1e-10)


def test_a_gaussian_network_without_evidence_is_its_dense_gaussian() -> None:
    bn = sf.read(SHARED / "networks" / "arth150.json")
    names, mean, covariance = gaussian(bn, {})
    every = bn.marginals()
    np.testing.assert_allclose([every[n].mean for n in names], mean, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose([every[n].variance for n in names], np.diag(covariance), rtol=1e-10)
