"""Little's test on R's airquality, from the rows in ../shared (`make reference`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from suffice import Real
from suffice.recipes.missing.missingness import missingness

TABLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "tables"


def test_little_on_airquality() -> None:
    """naniar::mcar_test(airquality) of R prints statistic 35.1, df 14, p.value 0.00142, missing.patterns 4.

    It takes the maximum-likelihood covariance as it is, as we do; with the unbiased one, N/(N − 1) times it, d² would be 34.88.
    """
    report = missingness(TABLES / "airquality.csv", missing=["NA"], integers=Real)
    assert "Little's test" in report.mcar.what
    assert report.mcar.df == 14
    assert report.mcar.statistic == pytest.approx(35.1, abs=0.05)
    assert report.mcar.p_value == pytest.approx(0.00142, abs=0.000005)
    assert len(report.patterns) == 4
    assert {c.name: c.missing for c in report.columns if c.missing} == {"Ozone": 37, "Solar.R": 7}
    assert report.complete == 111
    assert [d[:2] for d in report.depends] == [("Ozone", "Month")]
