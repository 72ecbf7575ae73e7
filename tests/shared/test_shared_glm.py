"""Regressions of R and statsmodels, from the tables in ../shared (`make reference`). Numbers: shared/data/REFERENCE.md."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.basis.variables import Count, Finite
from suffice.families.regressions.logistic import ProportionalOdds

TABLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "tables"


def regression(table: Any, child: str, parents: str, family: Any, variables: dict[str, Any] | None = None, **options: Any) -> Any:
    """The fitted CPD of a child in a network, its parents in this order."""
    columns = pd.read_csv(TABLES / table) if isinstance(table, str) else pd.DataFrame(table)
    names = parents.split()
    kept = columns[[child, *names, *([options["weights"]] if "weights" in options else [])]]
    data = sf.scan(kept, variables=variables or {}, **options)
    bn = sf.fit("; ".join(f"{p} -> {child}" for p in names), data, families={child: family})
    return bn[child]


def estimate(cpd: Any, parents: str) -> Any:
    arranged = cpd.reorder(parents.split())
    return np.concatenate([np.ravel(arranged.intercept), np.ravel(arranged.coefficients)])


def check(cpd: Any, parents: str, coefficients: str, log_likelihood: float | None = None, deviance: float | None = None) -> None:
    """To the digits given."""
    expected = coefficients.split()
    found = estimate(cpd, parents)
    for text, value in zip(expected, found, strict=True):
        digits = len(text.split(".")[1]) if "." in text else 0
        assert value == pytest.approx(float(text), rel=0, abs=0.51 * 10.0**-digits)
    if log_likelihood is not None:
        assert cpd.fitted.log_likelihood == pytest.approx(log_likelihood, rel=5e-12)
    if deviance is not None:
        assert cpd.fitted.deviance == pytest.approx(deviance, rel=5e-12)


def test_dobson():
    table = {"counts": [18, 17, 15, 20, 10, 20, 25, 13, 12], "outcome": list("123123123"), "treatment": list("111222333")}
    cpd = regression(table, "counts", "outcome treatment", sf.regressions.PoissonLog(), {"counts": Count("counts")})
    check(cpd, "outcome treatment", "3.044522438 -.4542552723 -.2929871247 0 0", -23.380659201, 5.129141077)


def test_clotting():
    """R's logLik takes the deviance over n for the dispersion, where ours is that of largest likelihood."""
    table = {"u": np.log([5, 10, 15, 20, 30, 40, 60, 80, 100]), "lot": [118.0, 58, 42, 35, 27, 25, 21, 19, 18]}
    cpd = regression(table, "lot", "u", sf.regressions.GammaInverse())
    check(cpd, "u", "-.01655438173 .01534311491", deviance=0.0167297151785)
    of_r = replace(cpd, dispersion=cpd.fitted.deviance / 9).log_prob({k: np.array(v) for k, v in table.items()}).sum()
    assert of_r == pytest.approx(-15.994961975, abs=6e-10)
    assert cpd.fitted.log_likelihood > of_r


def test_anorexia():
    table = pd.read_csv(TABLES / "anorexia.csv").assign(before=lambda t: t.Prewt)
    treatments = {"Treat": Finite("Treat", ["CBT", "Cont", "FT"])}
    cpd = regression(table, "Postwt", "Prewt Treat before", sf.regressions.Linear(offset="before"), treatments)
    check(
        cpd,
        "Prewt Treat before",
        "49.77110901 -.5655388496 -4.097065528 4.563062653",
        -239.986648771,
        3311.26261992,
    )


BINARY = ["0", "1"]
TITANIC = {
    "Survived": Finite("Survived", ["No", "Yes"]),
    "Class": Finite("Class", ["1st", "2nd", "3rd", "Crew"]),
    "Sex": Finite("Sex", ["Male", "Female"]),
    "Age": Finite("Age", ["Child", "Adult"]),
}
BERKELEY = {
    "Admit": Finite("Admit", ["Rejected", "Admitted"]),
    "Gender": Finite("Gender", ["Male", "Female"]),
    "Dept": Finite("Dept", list("ABCDEF")),
}


@pytest.mark.parametrize(
    ("table", "child", "parents", "variables", "log_likelihood", "coefficients"),
    [
        (
            "birthwt.csv",
            "low",
            "age lwt race smoke ptl ht ui ftv",
            {"low": Finite("low", BINARY), "race": Finite("race", ["1", "2", "3"])},
            -100.642397528,
            ".480623205 -.02954902689 -.01542428394 1.272259795 .8804959229 .9388456988 .5433370306 1.863302868 .7676481449 "
            ".06530183436",
        ),
        (
            "infert.csv",
            "case",
            "spontaneous induced",
            {"case": Finite("case", BINARY)},
            -139.805989417,
            "-1.707860071 1.197205035 .418129395",
        ),
        (
            "ucb_admissions.csv.gz",
            "Admit",
            "Gender Dept",
            BERKELEY,
            -2593.74424709,
            ".5820513953 .09987008816 -.04339793121 -1.262598022 -1.294606469 -1.739305738 -3.306480056",
        ),
        (
            "titanic_persons.csv",
            "Survived",
            "Class Sex Age",
            TITANIC,
            -1105.03055285,
            ".6853194527 -1.018094952 -1.777762218 -.8576761554 2.420060346 -1.061542376",
        ),
        (
            "spector.csv",
            "GRADE",
            "GPA TUCE PSI",
            {"GRADE": Finite("GRADE", BINARY)},
            -12.889634222131418,
            "-13.02134686 2.82611259 .09515766 2.37868766",
        ),
    ],
)
def test_logit(table, child, parents, variables, log_likelihood, coefficients):
    cpd = regression(table, child, parents, sf.Logistic(), variables)
    assert cpd.fitted.log_likelihood == pytest.approx(log_likelihood, rel=5e-12)
    assert cpd.fitted.deviance == pytest.approx(-2 * log_likelihood, rel=5e-12)
    np.testing.assert_allclose(estimate(cpd, parents), [float(c) for c in coefficients.split()], rtol=2e-8, atol=2e-9)


def test_quine():
    parents = "Eth Sex Age Lrn"
    cpd = regression("quine.csv", "Days", parents, sf.regressions.PoissonLog(), {"Days": Count("Days")})
    coefficients = "2.715380219 -.5336043252 .1615965891 -.3339013641 .2578283519 .4276938285 .3489429643"
    check(cpd, parents, coefficients, -1142.59181514, 1696.70655249)
    spread = regression("quine.csv", "Days", parents, sf.regressions.NegativeBinomialLog(), {"Days": Count("Days")})
    assert spread.fitted.log_likelihood == pytest.approx(-546.575509145, rel=2e-12)
    assert 1 / spread.dispersion == pytest.approx(1.27489264581, rel=1e-9)  # MASS stops at 1e-9 of the maximum


def test_menarche():
    counts = {"Menarche": Count("Menarche"), "Total": Count("Total")}
    cpd = regression("menarche.csv", "Menarche", "Age Total", sf.regressions.BinomialLogit(trials="Total"), counts)
    check(cpd, "Age Total", "-21.22639491 1.631968348", -55.3776271566, 26.7034516358)


def test_warpbreaks():
    """With interactions: a column for each."""
    table = pd.read_csv(TABLES / "warpbreaks.csv")
    for tension in "MH":
        table[f"B{tension}"] = ((table.wool == "B") & (table.tension == tension)).astype(float)
    variables = {"breaks": Count("breaks"), "tension": Finite("tension", ["L", "M", "H"])}
    cpd = regression(table, "breaks", "wool tension BM BH", sf.regressions.PoissonLog(), variables)
    coefficients = "3.79673685 -.4566271603 -.6186830196 -.5957987258 .6381768143 .1883631737"
    check(cpd, "wool tension BM BH", coefficients, -228.484604471, 182.305131286)


def test_spector_probit():
    cpd = regression("spector.csv", "GRADE", "GPA TUCE PSI", sf.regressions.Probit(), {"GRADE": Finite("GRADE", BINARY)})
    check(cpd, "GPA TUCE PSI", "-7.45231965 1.62581004 .05172895 1.42633234", -12.818804068889442)


def test_star98():
    """PR50M of MATHTOT pupils are above the median; all other columns are regressors."""
    table = pd.read_csv(TABLES / "star98.csv.gz")
    parents = " ".join(c for c in table.columns if c != "PR50M")
    counts = {"PR50M": Count("PR50M"), "MATHTOT": Count("MATHTOT")}
    cpd = regression(table, "PR50M", parents, sf.regressions.BinomialLogit(trials="MATHTOT"), counts)
    assert cpd.fitted.log_likelihood == pytest.approx(-2998.6125589939766, rel=5e-14)
    assert cpd.fitted.deviance == pytest.approx(4078.765417718449, rel=1e-13)
    own = dict(zip(("const", *cpd.terms), [cpd.intercept, *cpd.coefficients], strict=True))
    assert [own["const"], own["LOWINC"]] == pytest.approx([2.95887793, -0.01681504], abs=6e-9)


def test_scotvote():
    """statsmodels' log-likelihood takes the Pearson dispersion, which is its scale."""
    table = pd.read_csv(TABLES / "scotvote.csv")
    parents = " ".join(c for c in table.columns if c not in ("YES", "COUNCILDIST"))
    cpd = regression(table, "YES", parents, sf.regressions.GammaInverse())
    assert cpd.fitted.deviance == pytest.approx(0.08738851641699855, rel=1e-12)
    assert cpd.fitted.dispersion == pytest.approx(0.0035842832, abs=6e-11)
    assert cpd.intercept == pytest.approx(-0.0177652703, abs=6e-11)
    columns = {n: table[n].to_numpy(dtype=float) for n in (*parents.split(), "YES")}
    theirs = replace(cpd, dispersion=cpd.fitted.dispersion).log_prob(columns).sum()
    assert theirs == pytest.approx(-83.01720216107469, rel=1e-12)


def test_randhie():
    table = pd.read_csv(TABLES / "randhie.csv.gz")
    parents = " ".join(c for c in table.columns if c != "mdvis")
    cpd = regression(table, "mdvis", parents, sf.regressions.PoissonLog(), {"mdvis": Count("mdvis")})
    assert cpd.fitted.log_likelihood == pytest.approx(-62419.58856444892, rel=1e-13)
    assert estimate(cpd, parents)[:2] == pytest.approx([0.7003528786, -0.0525351154], abs=6e-11)


def test_anes96():
    """Seven states; without parents, the frequencies."""
    table = pd.read_csv(TABLES / "anes96.csv").assign(logpopul=lambda t: np.log(t.popul + 0.1))
    states = {"PID": Finite("PID", list("0123456"))}
    cpd = regression(table, "PID", "logpopul selfLR age educ income", sf.Logistic(), states)
    assert cpd.fitted.log_likelihood == pytest.approx(-1461.9227472481462, rel=1e-13)
    alone = sf.fit("PID", sf.scan(table[["PID"]], variables=states), families={"PID": sf.Logistic()})["PID"]
    counts = table.PID.value_counts().to_numpy()
    assert alone.fitted.log_likelihood == pytest.approx(float(counts @ np.log(counts / len(table))), rel=1e-14)
    assert alone.fitted.log_likelihood == pytest.approx(-1750.346710709092, rel=1e-9)  # which is 7e-7 short of the maximum


def test_fair():
    table = pd.read_csv(TABLES / "fair.csv.gz").assign(affair=lambda t: np.where(t.affairs > 0, "1", "0"))
    parents = "occupation educ occupation_husb rate_marriage age yrs_married children religious"
    cpd = regression(table, "affair", parents, sf.Logistic())
    assert cpd.fitted.log_likelihood == pytest.approx(-3471.4714230566797, rel=1e-13)
    assert cpd.intercept[0] == pytest.approx(3.72571987, abs=6e-9)


def test_housing():
    """MASS polr, with frequencies."""
    levels = {
        "Sat": ["Low", "Medium", "High"],
        "Infl": ["Low", "Medium", "High"],
        "Type": ["Tower", "Apartment", "Atrium", "Terrace"],
        "Cont": ["Low", "High"],
    }
    variables = {n: Finite(n, states) for n, states in levels.items()}
    cpd = regression("housing.csv", "Sat", "Infl Type Cont", ProportionalOdds(), variables, weights="Freq")
    assert cpd.fitted.deviance == pytest.approx(3479.14929906, abs=6e-9)
    np.testing.assert_allclose(cpd.cut_points, [-0.49613534, 0.69070829], atol=2e-7)  # which R stops short of
    expected = [0.56639374, 1.2888191, -0.57235015, -0.36618657, -1.0910149, 0.36028415]
    np.testing.assert_allclose(cpd.reorder(["Infl", "Type", "Cont"]).coefficients, expected, atol=2e-7)


def test_stackloss():
    cpd = regression("stackloss.csv", "STACKLOSS", "AIRFLOW WATERTEMP ACIDCONC", sf.regressions.Linear())
    coefficients = "-39.91967442 .7156402005 1.2952861244 -.1521225191"
    check(cpd, "AIRFLOW WATERTEMP ACIDCONC", coefficients, -52.28779550239973)


def test_longley():
    """Certified by NIST."""
    parents = "GNPDEFL GNP UNEMP ARMED POP YEAR"
    cpd = regression("longley.csv", "TOTEMP", parents, sf.regressions.Linear())
    expected = [
        -3482258.63459582,
        15.0618722713733,
        -0.0358191792925910,
        -2.02022980381683,
        -1.03322686717359,
        -0.0511041056535807,
        1829.15146461355,
    ]
    np.testing.assert_allclose(estimate(cpd, parents), expected, rtol=1e-11)
    assert cpd.fitted.log_likelihood == pytest.approx(-109.6174348084912, rel=1e-13)
