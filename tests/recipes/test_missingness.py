"""The report on missing cells: counts against the obvious way, tests of MCAR against scipy, closed forms and simulation."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from scipy import stats
from typer.testing import CliRunner

import suffice as sf
from suffice.engines.engine import ROWS
from suffice.errors import DataError, SufficeNote
from suffice.interfaces.cli.commands.data import missing_command
from suffice.recipes.missing import mcar as mcar_module
from suffice.recipes.missing import missing_cells as cells_module
from suffice.recipes.missing.mcar import normal_by_em
from suffice.recipes.missing.missing_cells import Ranks
from suffice.recipes.missing.missingness import Missingness, missingness
from suffice.statistics.moments import Spread

SMALL: dict[str, list[Any]] = {
    "x": ["a", None, "b", None, "a", None],
    "y": [1.5, 2.5, None, None, 3.0, None],
    "z": ["u", "v", "v", "u", "u", None],
    "n": [None] * 6,
}


def facts(report: Missingness) -> dict[str, Any]:
    """The report without what has to do with the order of sums."""
    return json.loads(json.dumps(report.to_dict()), parse_float=lambda x: float(f"{float(x):.9g}"))


def chain(n: int, seed: int, *, at_random: bool) -> dict[str, Any]:
    """The chain A → B → C: A is deleted with probability .8 where C is 1, or as often wherever."""
    rng = np.random.default_rng(seed)
    a = rng.random(n) < 0.5
    b = rng.random(n) < np.where(a, 0.8, 0.3)
    c = rng.random(n) < np.where(b, 0.7, 0.2)
    gap = rng.random(n) < (np.where(c, 0.8, 0.0) if at_random else 0.8 * c.mean())
    return {"A": pd.array(np.where(gap, None, a.astype(str))), "B": b, "C": c}


def numbers(n: int, seed: int, share: float = 0.15) -> dict[str, Any]:
    """Four correlated columns with cells missing completely at random."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 4)) @ rng.standard_normal((4, 4)) + 1e6
    x[rng.random(x.shape) < share] = np.nan
    return {f"x{i}": x[:, i] for i in range(4)}


def test_counts_and_patterns() -> None:
    report = missingness(SMALL)
    assert [tuple(c) for c in report.columns] == [("x", 3, 0.5), ("y", 3, 0.5), ("z", 1, pytest.approx(1 / 6)), ("n", 6, 1.0)]
    assert {p.missing: p.rows for p in report.patterns} == {
        ("n",): 2,
        ("x", "n"): 1,
        ("y", "n"): 1,
        ("x", "y", "n"): 1,
        ("x", "y", "z", "n"): 1,
    }
    assert report.patterns[0].missing == ("n",)
    assert (report.n_rows, report.complete, report.incomplete, report.empty_rows, report.empty_columns) == (6, 0, 6, 1, ("n",))
    assert sum(p.share for p in report.patterns) == pytest.approx(1.0)
    assert json.loads(json.dumps(report.to_dict()))["patterns"][0] == {"missing": ["n"], "rows": 2, "share": pytest.approx(1 / 3)}
    assert "without an observed cell: 'n'" in repr(report)
    assert "1 rows have no observed cell" in repr(report)
    assert "<td>x, y, n</td>" in report._repr_html_()


def test_large_data_against_pandas() -> None:
    """Several blocks of rows."""
    frame = sf.load("asia").sample(2 * ROWS + 5, seed=1).to_pandas().astype(object)
    frame = frame.mask(np.random.default_rng(2).random(frame.shape) < 0.2, None)
    report = missingness(frame)
    assert {c.name: c.missing for c in report.columns} == frame.isna().sum().to_dict()
    expected = frame.isna().value_counts().to_dict()
    assert {tuple(n in p.missing for n in frame): p.rows for p in report.patterns} == expected
    assert [p.rows for p in report.patterns] == sorted(expected.values(), reverse=True)
    assert report.complete == len(frame.dropna())
    assert report.complete_share == len(frame.dropna()) / len(frame)
    assert report.mcar.p_value > 0.01
    assert not report.depends
    assert report.warning is None


@pytest.mark.parametrize(
    "rows", [chain(500, 0, at_random=True), numbers(300, 1), {**chain(300, 2, at_random=True), **numbers(300, 3)}]
)
def test_weights_repeat_rows(rows: dict[str, Any]) -> None:
    frame = pd.DataFrame(rows)
    weights = np.random.default_rng(4).integers(0, 4, len(frame))
    repeated, weighted = missingness(frame.loc[frame.index.repeat(weights)]), missingness(frame, weights=weights)
    for name in ("weight", "complete", "empty_rows", "mcar", "depends"):
        if name in ("mcar", "depends") and "x0" in rows:
            continue  # ranks are told from rows, so that those of weight 0 shift them a little
        assert facts(weighted)[name] == facts(repeated)[name]
    assert {p.missing: p.rows for p in weighted.patterns if p.rows} == {p.missing: p.rows for p in repeated.patterns}
    assert weighted.mcar.p_value == pytest.approx(repeated.mcar.p_value, rel=0.2)


def test_every_engine(tmp_path: Path) -> None:
    frame = pd.DataFrame({**chain(400, 5, at_random=True), **numbers(400, 6)})
    frame["B"], frame["C"] = frame["B"].map({False: "f", True: "t"}), frame["C"].map({False: "f", True: "t"})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    reports = [facts(missingness(x)) for x in (frame, tmp_path / "rows.csv", tmp_path / "rows.parquet", sf.scan(frame))]
    assert all(report == reports[0] for report in reports)


def test_level_and_power() -> None:
    """Of 60 tables missing completely at random few are rejected at 5 % (expected: 3); of 20 missing at random all are."""
    for make in (lambda s: chain(400, s, at_random=False), lambda s: numbers(200, s)):
        reports = [missingness(make(seed)) for seed in range(60)]
        assert sum(r.mcar.p_value < 0.05 for r in reports) <= 9
        assert sum(bool(r.depends) for r in reports) <= 4
    for seed in range(20):
        report = missingness(chain(1000, seed, at_random=True))
        assert report.mcar.p_value < 1e-10
        assert report.depends[0][:2] == ("A", "C")
        assert report.depends[0].strength > 0.5


def test_the_warning_of_the_chain() -> None:
    rows = chain(2000, 0, at_random=True)
    with pytest.warns(SufficeNote, match=r"depends on observed values \(A on C, A on B\).*biased.*\(fit, em\).*MNAR"):
        report = missingness(rows, warn=True)
    assert report.warning is not None
    assert report.warning in " ".join(repr(report).split())
    assert max(map(len, repr(report).splitlines())) <= 120
    assert "depends on" in report._repr_html_()


def test_pairs_against_scipy() -> None:
    """G² of states, Welch's t of ranks, and the correction for two pairs."""
    rng = np.random.default_rng(7)
    state, number = rng.choice(["p", "q", "r"], 500), np.exp(rng.standard_normal(500)).round(1)
    gap = rng.random(500) < np.where(state == "p", 0.4, 0.2) + 0.02 * number
    report = missingness({"g": pd.array(np.where(gap, None, "yes")), "state": state, "number": number})
    g = stats.chi2_contingency(pd.crosstab(gap, state), correction=False, lambda_="log-likelihood")
    ranks = stats.rankdata(number)
    t = stats.ttest_ind(ranks[gap], ranks[~gap], equal_var=False)
    low, high = sorted([(g.pvalue, g.statistic, g.dof), (t.pvalue, t.statistic, t.df)])
    assert report.mcar[:3] == pytest.approx((low[1], low[2], 2 * low[0]), rel=1e-6)
    corrected = sorted(d.p_value for d in report.depends)
    assert corrected == pytest.approx([2 * low[0], max(2 * low[0], high[0])][: len(corrected)], rel=1e-6)
    strength = {d.on: d.strength for d in report.depends}
    assert strength["state"] == pytest.approx(stats.contingency.association(pd.crosstab(gap, state)), rel=1e-6)


def test_a_side_that_does_not_vary() -> None:
    """A column that is nearly always 0 is 0 in the few rows with a gap: that is no sign of anything."""
    number = np.zeros(1000)
    number[:150] = 1.0
    gap = np.zeros(1000, bool)
    gap[-20:] = True
    report = missingness({"g": pd.array(np.where(gap, None, "yes")), "number": number}, integers=sf.Real)
    t = stats.ttest_ind(number[gap], number[~gap])
    assert report.mcar[:3] == pytest.approx((t.statistic, t.df, t.pvalue), rel=1e-6)
    assert report.mcar.p_value is not None
    assert report.mcar.p_value > 0.05
    gap[:1000] = number > 0
    assert missingness({"g": pd.array(np.where(gap, None, "yes")), "number": number}, integers=sf.Real).depends[
        0
    ].strength == pytest.approx(1.0)
    few = {"g": pd.array(np.where(np.arange(1000) < 6, None, "yes")), "number": number}
    assert missingness(few, integers=sf.Real).mcar.what.startswith("no two columns could be compared")


def test_ranks() -> None:
    values = np.random.default_rng(8).integers(0, 40, 500).astype(float)
    np.testing.assert_allclose(Ranks.of(values)(values), (stats.rankdata(values) - 0.5) / 500, rtol=1e-12)
    many = np.random.default_rng(9).standard_normal(5000)
    np.testing.assert_allclose(Ranks.of(many)(many), (stats.rankdata(many) - 0.5) / 5000, atol=0.003)
    np.testing.assert_array_equal(Ranks.of(np.array([1.0, 2.0, 2.0, 50.0]))(np.array([0.0, 2.0, 3.0])), [0.0, 0.5, 0.75])
    np.testing.assert_array_equal(Ranks.of(np.empty(0))(np.array([1.0, np.nan])), [0.5, np.nan])


def test_rare_states_are_pooled() -> None:
    """A state that occurs once must not decide."""
    state = np.array(["common"] * 300 + ["other"] * 200 + [f"rare{i}" for i in range(5)])
    gap = np.zeros(505, bool)
    gap[[*range(0, 500, 10), 500, 501, 502]] = True
    report = missingness({"g": pd.array(np.where(gap, None, "yes")), "state": state})
    assert report.mcar.df == 1
    assert report.mcar.p_value > 0.05


def test_em_of_a_normal_with_one_gappy_column_has_a_closed_form() -> None:
    """Anderson 1957, J. Am. Stat. Assoc. 52, p. 200: the mean of y by regression on x."""
    rng = np.random.default_rng(10)
    x = rng.standard_normal(300)
    y = 2.0 * x + 1.0 + rng.standard_normal(300)
    gap = rng.random(300) < stats.norm.cdf(x)
    seen = np.array([[True, True], [True, False]])
    both, alone = np.stack([x[~gap], y[~gap]]), x[gap]
    scatter = [np.cov(both) * ((~gap).sum() - 1), np.diag([alone.var() * len(alone), 0.0])]
    means = np.array([both.mean(axis=1), [alone.mean(), 0.0]])
    normals = Spread(np.array([(~gap).sum(), gap.sum()], float), means, np.zeros((2, 2)), np.array(scatter))
    fitted = normal_by_em(seen, normals)
    assert fitted is not None
    slope, intercept = np.polyfit(both[0], both[1], 1)
    residual = (both[1] - slope * both[0] - intercept).var()
    np.testing.assert_allclose(fitted[0], [x.mean(), intercept + slope * x.mean()], rtol=1e-6)
    expected = [[x.var(), slope * x.var()], [slope * x.var(), slope**2 * x.var() + residual]]
    np.testing.assert_allclose(fitted[1], expected, rtol=1e-6)


def test_little_takes_any_units() -> None:
    rows = numbers(300, 11)
    report, scaled = missingness(rows), missingness({n: 1e-8 * (x - 1e6) for n, x in rows.items()})
    assert "Little's test of 4 columns" in report.mcar.what
    assert scaled.mcar[:3] == pytest.approx(report.mcar[:3], rel=1e-5)
    patterns = np.unique(np.isnan(np.stack(list(rows.values()))), axis=1)
    patterns = patterns[:, ~patterns.all(axis=0)]
    assert report.mcar.df == (~patterns).sum() - 4


def test_little_falls_back_to_pairs() -> None:
    rows = numbers(200, 12)
    collinear = {**rows, "sum": rows["x0"] + rows["x1"], "constant": np.ones(200)}
    report = missingness(collinear)
    assert report.mcar.what.startswith("columns of numbers are collinear")
    assert report.mcar.p_value > 0.01
    assert "Little's test of 4" in missingness({**rows, "constant": np.ones(200)}).mcar.what


def test_steps_of_the_tests_by_hand() -> None:
    pairs = [mcar_module.Dependence("a", "b", p, 0.1, 1.0, 1) for p in (0.04, 0.01, 0.03)]
    assert [round(p.p_value, 6) for p in mcar_module.holm(pairs)] == [0.03, 0.06, 0.06]
    assert mcar_module.affordable(4, 6) == 14198
    counts = np.array([30.0, 20.0, 4.0, 3.0])
    assert mcar_module._pools(counts, np.array([3.0, 5.0, 10.0, 50.0])).tolist() == [4, 3, 2, 1]
    pooled = mcar_module._pool_weights(counts[None], np.array([3, 2])).tolist()
    assert pooled == [[30.0, 20.0, 7.0, 0.0], [30.0, 27.0, 0.0, 0.0]]
    one = cells_module.Patterns.of(np.array([[True, False, True], [False, False, False]]), np.ones(3))
    assert {key[0]: weight for key, weight in (one + one).weights.items()} == {0: 2.0, 128: 4.0}


def test_little_within_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = numbers(300, 17)
    whole = missingness(rows).mcar
    patterns = int(np.unique(np.isnan(np.stack(list(rows.values()))), axis=1).shape[1])
    per_iteration = mcar_module.BUDGET // mcar_module.affordable(patterns, 4)
    monkeypatch.setattr(mcar_module, "BUDGET", 99 * per_iteration)
    report = missingness(rows)
    assert f"Little's test of 4 columns of numbers in {patterns} patterns would take too long; 12 pairs" in report.mcar.what
    monkeypatch.setattr(mcar_module, "FEWEST_ITERATIONS", 2)
    monkeypatch.setattr(mcar_module, "BUDGET", 30 * per_iteration)
    cut = missingness(rows).mcar
    assert cut.what == whole.what
    assert cut[:3] == pytest.approx(whole[:3], rel=0.01)
    monkeypatch.setattr(mcar_module, "BUDGET", 2 * per_iteration)
    monkeypatch.setattr(mcar_module, "SETTLED", 0.0)
    assert "EM for Little's test of 4 columns of numbers would take too long; 12 pairs" in missingness(rows).mcar.what


def test_control_c_keeps_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    rows = {**chain(500, 18, at_random=True), **numbers(500, 19)}
    whole = missingness(rows)
    monkeypatch.setattr(mcar_module, "little", interrupted)
    report = missingness(rows)
    assert report.mcar.what.startswith("Little's test of the numbers was interrupted; ")
    assert report.depends == whole.depends
    monkeypatch.setattr(mcar_module, "_finite_pairs", interrupted)
    report = missingness(rows)
    assert report.columns == whole.columns
    assert report.patterns == whole.patterns
    assert "MCAR: not tested: it was interrupted" in repr(report)


def test_mixed_columns_have_both_tests() -> None:
    report = missingness({**chain(500, 13, at_random=True), **numbers(500, 14)})
    assert report.mcar.what.startswith("the more telling of two tests, p doubled")
    assert "Little's test" in report.mcar.what
    assert report.mcar.p_value < 1e-10


def test_nothing_to_test() -> None:
    for rows in (
        {"x": ["a", "b"]},
        {"x": [1.0, None]},
        {"x": [None, None], "y": ["a", "b"]},
        {"x": [None, "a"], "y": [1.0, 2.0]},
    ):
        report = missingness(rows)
        assert report.mcar[:3] == (None, None, None)
        assert f"MCAR: not tested: {report.mcar.what}" in " ".join(repr(report).split())
        assert json.loads(json.dumps(report.to_dict()))["mcar"]["p_value"] is None
        assert report.warning is None
        assert repr(report).startswith("Missingness: 2 rows")
    assert missingness({"x": ["a", "b"]}).complete == 2


def test_too_much_is_left_out_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = numbers(300, 15)
    whole = missingness(rows)
    monkeypatch.setattr(cells_module, "MAX_MOMENTS", 3)
    assert "too many patterns for Little's test" in missingness(rows).mcar.what
    many = {f"c{i}": pd.array(np.where(np.random.default_rng(i).random(2 * ROWS) < 0.5, None, "a")) for i in range(8)}
    monkeypatch.setattr(cells_module, "MAX_PATTERNS", 100)
    report = missingness(many)
    assert len(report.patterns) == 100
    assert "very many patterns" in repr(report)
    monkeypatch.setattr(cells_module, "MAX_NUMBERS", 10)
    assert "were not compared: they are too many" in repr(missingness(rows))
    assert [c.missing for c in missingness(rows).columns] == [c.missing for c in whole.columns]
    monkeypatch.undo()
    ids = {"id": [f"i{i}" for i in range(1500)], "x": pd.array(["a", None] * 750)}
    assert "more than 1,000 states were not compared: 'id'" in repr(missingness(ids))


def test_what_cannot_be_reported_on_is_refused() -> None:
    with pytest.raises(DataError, match="statistics have none"):
        missingness(sf.gather({"x": ["a"]}, "x"))
    with pytest.raises(DataError, match="no rows"):
        missingness({"x": []})


def test_the_command(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(missing_command)
    pd.DataFrame({"id": range(1000), **chain(1000, 16, at_random=True)}).to_csv(tmp_path / "rows.csv", index=False)
    told = CliRunner().invoke(app, [str(tmp_path / "rows.csv"), "--without", "id"])
    assert told.exit_code == 0, told.output
    assert "Missingness: 1,000 rows of 3 columns" in told.stdout
    assert "warning: which cells are missing depends on" in told.stdout
    asked = CliRunner().invoke(app, [str(tmp_path / "rows.csv"), "--without", "id", "--missing", "False", "--json"])
    columns = json.loads(asked.stdout)["columns"]
    assert [c["name"] for c in columns] == ["A", "B", "C"]
    assert all(c["missing"] > 0 for c in columns)


def test_a_report_needs_no_models_and_no_pictures() -> None:
    code = (
        "import sys, suffice as sf; sf.missingness({'x': [1.0, None, 2.0, 3.0], 'y': list('abba')}); "
        "print([m for m in sys.modules if m.startswith(('suffice.families', 'suffice.graphs', 'suffice.basis.pictures'))])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
