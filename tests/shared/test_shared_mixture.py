"""Mixtures of Old Faithful and iris, whose optima other programs print (`make reference`): REFERENCE.md, "Mixtures and EM"."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import suffice as sf
from suffice.learning.latent.mixture_setup import Full, Kind, Tied
from suffice.recipes.latent.mixture import mixture

TABLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "tables"


def test_old_faithful() -> None:
    run = mixture(TABLES / "faithful.csv", 2, tol=1e-12)
    assert run.log_likelihood == pytest.approx(-1130.263960184809, abs=1e-9)
    np.testing.assert_allclose(run.weights, [0.6441271, 0.3558729], atol=1e-6)
    np.testing.assert_allclose(run.means, [[4.289662068, 79.968116317], [2.036388561, 54.478517451]], atol=1e-5)
    lower = run.covariances[:, [0, 0, 1], [0, 1, 1]]
    np.testing.assert_allclose(
        lower, [[0.169968316, 0.940607793, 36.046194135], [0.069167757, 0.435168509, 33.697288105]], atol=1e-4
    )


@pytest.mark.parametrize(("kind", "k", "expected"), [(Tied(), 2, -1140.18676), (Tied(), 3, -1126.3159), (Full(), 3, -1119.21397)])
def test_old_faithful_optima(kind: Kind, k: int, expected: float) -> None:
    run = mixture(TABLES / "faithful.csv", k, kind)
    assert run.log_likelihood == pytest.approx(expected, abs=1e-4)


def test_mclust_of_old_faithful() -> None:
    """mclust stops early: log-likelihood -1126.326, df 11, BIC -2314.316, ICL -2357.824."""
    run = mixture(TABLES / "faithful.csv", range(1, 5), Tied())
    assert (run.k, run.n_parameters) == (3, 11)
    assert 2 * run.bic == pytest.approx(-2314.316, abs=0.05)
    assert 2 * run.icl == pytest.approx(-2357.824, abs=1.0)


@pytest.mark.parametrize(("k", "expected", "bic"), [(2, -214.35470437, -574.0178), (3, -180.18547713, -580.8389)])
def test_iris(k: int, expected: float, bic: float) -> None:
    data = sf.scan(TABLES / "iris.csv")
    run = mixture(data.select([n for n, v in data.schema.items() if isinstance(v, sf.Real)]), k)
    assert run.log_likelihood == pytest.approx(expected, abs=1e-5)
    assert 2 * run.bic == pytest.approx(bic, abs=1e-3)
