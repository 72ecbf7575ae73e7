"""Admissions to six departments of Berkeley, 1973: how far the departments are pooled. Run by `make reference`."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

import suffice as sf
from suffice.learning.complete.plates import Partial, Plate, Pooled, Separate

TABLES = Path(os.environ.get("SUFFICE_SHARED", Path(__file__).parents[3] / "shared")) / "data" / "tables"


def test_departments_are_pooled_in_part() -> None:
    rows = sf.scan(TABLES / "ucb_admissions.csv.gz")
    fits = {
        type(p): sf.fit(Plate("Gender -> Admit", group="Dept", inside=["Admit"], pooling=p), rows, prior=sf.BDeu(1))
        for p in (Pooled(), Separate(), Partial())
    }
    tied, separate, partial = (fits[kind]["Admit"].probs[..., 0] for kind in (Pooled, Separate, Partial))
    np.testing.assert_allclose(tied, [557 / 1835, 1198 / 2691], atol=2e-4)  # women 30 %, men 45 %
    found = fits[Partial].prior.found["Admit"]  # type: ignore[union-attr]
    mean = found.mean[:, :1]
    counts = fits[Partial]["Admit"].seen.dense()
    own = counts[..., 0] / counts.sum(axis=-1)
    assert np.all((partial > np.minimum(own, mean)) & (partial < np.maximum(own, mean)))
    assert np.abs(partial - own).max() < 0.05  # hundreds of applicants each: little is left to the mean
    np.testing.assert_allclose(separate, own, atol=0.02)


def test_the_strength_is_that_of_a_beta_binomial() -> None:
    """The marginal likelihood of the pooled rows, maximised over one strength and two means by scipy."""
    from scipy.optimize import minimize
    from scipy.special import betaln, expit

    rows = sf.scan(TABLES / "ucb_admissions.csv.gz")
    bn = sf.fit(Plate("Gender -> Admit", group="Dept", inside=["Admit"], pooling=Partial()), rows, prior=sf.BDeu(1))
    N = bn["Admit"].seen.dense()

    def lacking(x: np.ndarray) -> float:
        s, m = np.exp(x[0]), expit(x[1:])[:, None]
        a, b = s * m, s * (1.0 - m)
        return -float((betaln(N[..., 0] + a, N[..., 1] + b) - betaln(a, b)).sum())

    best = minimize(lacking, [1.0, 0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-10, "maxiter": 5000})
    found = bn.prior.found["Admit"]  # type: ignore[union-attr]
    ours = lacking(np.array([np.log(found.strength), *np.log(found.mean[:, 0] / found.mean[:, 1])]))
    assert best.fun <= ours <= best.fun + 0.05  # the means are held off 0 and 1 by one imagined row
    np.testing.assert_allclose(found.strength, np.exp(best.x[0]), rtol=0.1)
