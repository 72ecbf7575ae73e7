"""Logistic regressions of R and statsmodels, from the rows in ../shared (`make reference`). Numbers: shared/data/REFERENCE.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.basis.variables import Finite, Real
from suffice.engines.scan import scan
from suffice.families.regressions.logistic import Logistic
from suffice.families.regressions.regression_cpd import RegressionCpd
from suffice.learning.complete.irls import fit_regression

TABLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "tables"
BINARY = ["0", "1"]


def regression(
    table: Any, child: str, parents: str, states: dict[str, list[str]], weights: Any = None
) -> tuple[RegressionCpd, float]:
    names = [child, *parents.split()]
    declared = {n: Finite(n, states[n]) if n in states else Real for n in names}
    data = scan(table, variables=declared, weights=weights).select(names)
    cpd = fit_regression(data.schema[child], [data.schema[p] for p in parents.split()], data, Logistic())
    each = data.fold(lambda b: float((cpd.log_prob(b.columns) * (1.0 if b.weight is None else b.weight)).sum()))
    return cpd, each


@pytest.mark.parametrize(
    ("table", "child", "parents", "states", "log_likelihood", "coefficients"),
    [
        (
            "birthwt.csv",
            "low",
            "age lwt race smoke ptl ht ui ftv",
            {"low": BINARY, "race": ["1", "2", "3"]},
            -100.642397528,
            "0.480623205 -.02954902689 -.01542428394 1.272259795 .8804959229 .9388456988 .5433370306 1.863302868 .7676481449 "
            ".06530183436",
        ),
        (
            "infert.csv",
            "case",
            "spontaneous induced",
            {"case": BINARY},
            -139.805989417,
            "-1.707860071 1.197205035 .418129395",
        ),
        (
            "ucb_admissions.csv.gz",
            "Admit",
            "Gender Dept",
            {"Admit": ["Rejected", "Admitted"], "Gender": ["Male", "Female"], "Dept": list("ABCDEF")},
            -2593.74424709,
            ".5820513953 .09987008816 -.04339793121 -1.262598022 -1.294606469 -1.739305738 -3.306480056",
        ),
        (
            "titanic_persons.csv",
            "Survived",
            "Class Sex Age",
            {
                "Survived": ["No", "Yes"],
                "Class": ["1st", "2nd", "3rd", "Crew"],
                "Sex": ["Male", "Female"],
                "Age": ["Child", "Adult"],
            },
            -1105.03055285,
            ".6853194527 -1.018094952 -1.777762218 -.8576761554 2.420060346 -1.061542376",
        ),
        (
            "spector.csv",
            "GRADE",
            "GPA TUCE PSI",
            {"GRADE": BINARY},
            -12.889634222131418,
            "-13.02134686 2.82611259 .09515766 2.37868766",
        ),
    ],
)
def test_two_states(table, child, parents, states, log_likelihood, coefficients):
    cpd, found = regression(TABLES / table, child, parents, states)
    assert found == pytest.approx(log_likelihood, abs=1e-7)
    np.testing.assert_allclose(
        [*cpd.intercept, *cpd.coefficients[0]], [float(c) for c in coefficients.split()], rtol=2e-8, atol=2e-9
    )


def test_menarche_as_weighted_rows():
    """25 ages with totals: two weighted rows an age."""
    age, total, yes = np.loadtxt(TABLES / "menarche.csv", delimiter=",", skiprows=1).T
    table = {"age": np.tile(age, 2), "yes": ["0"] * len(age) + ["1"] * len(age), "n": np.concatenate([total - yes, yes])}
    cpd, _ = regression(table, "yes", "age", {"yes": BINARY}, weights="n")
    np.testing.assert_allclose([cpd.intercept[0], cpd.coefficients[0, 0]], [-21.22639491, 1.631968348], rtol=1e-8)


def test_multinomial_logit_of_anes96():
    """statsmodels' own example: PID on log(popul + 0.1), selfLR, age, educ, income; seven states."""
    header = (TABLES / "anes96.csv").read_text().splitlines()[0].split(",")
    columns = dict(zip(header, np.loadtxt(TABLES / "anes96.csv", delimiter=",", skiprows=1).T, strict=True))
    table = columns | {"logpopul": np.log(columns["popul"] + 0.1), "PID": [str(int(p)) for p in columns["PID"]]}
    cpd, found = regression(table, "PID", "logpopul selfLR age educ income", {"PID": list("0123456")})
    assert found == pytest.approx(-1461.9227472481462, abs=1e-7)
    assert cpd.n_parameters == 36
