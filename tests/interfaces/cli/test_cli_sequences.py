"""Sequences on the command line, called as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.interfaces.cli.demos import NILE
from suffice.models.chain import Chain

ROLLS = "315116246446644245311321631164152133625144543631656626566666"
DIE, ROLL = sf.Finite("die", ["fair", "loaded"]), sf.Finite("roll", list("123456"))
TEMPLATE = "die[-1] -> die -> roll"
CASINO = Chain(
    TEMPLATE,
    {"die": [[0.95, 0.05], [0.1, 0.9]], "die[0]": [0.5, 0.5], "roll": [[1 / 6] * 6, [0.1] * 5 + [0.5]]},
    [DIE, ROLL],
)
ASKED = ("--by", "evening", "--order", "time")


@pytest.fixture
def casino(run) -> pd.DataFrame:
    """The casino's chain, its sixty rolls, and three evenings whose rows are in disorder."""
    sf.write(CASINO, "casino.json")
    Path("rolls.csv").write_text("\n".join(["roll", *ROLLS, ""]), "utf-8")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"evening": np.repeat(["mon", "tue", "wed"], 20), "time": np.tile(np.arange(20), 3), "roll": list(ROLLS)})
    rows["remark"] = [f"no, {i}" for i in range(60)]
    rows = rows.iloc[rng.permutation(60)]
    rows.to_csv("evenings.csv", index=False)
    rows.to_parquet("evenings.parquet", index=False)
    return rows


def evenings() -> sf.chains.Sequences:
    return sf.sequences("evenings.csv", by="evening", order="time", variables={"roll": ROLL})


def test_decode_one_sequence(run, casino) -> None:
    code, out, err = run("decode", "casino.json", "rolls.csv")
    assert (code, err) == (0, "")
    assert out.split() == ["die", *["fair"] * 48, *["loaded"] * 12]
    code, out, err = run("decode", "casino.json", "rolls.csv", "-o", "path.csv")
    assert (code, out) == (0, "")
    assert "best paths, ln p -106.4091644 in all: 60 rows written to path.csv" in err


@pytest.mark.parametrize("command", ["decode", "smooth", "filter"])
@pytest.mark.parametrize("first", ["?", "0"])
def test_nothing_is_noted_of_the_columns_that_say_whose_rows_they_are(run, casino, command, first) -> None:
    lines = [f"{night or first},{time},{ROLLS[time]}" for night in range(12) for time in range(20)]
    Path("nights.csv").write_text("\n".join(["night,time,roll", *lines, ""]))
    code, _, err = run(command, "casino.json", "nights.csv", "--by", "night", "--order", "time", "-o", "out.csv")
    assert (code, len(err.splitlines())) == (0, 1), err
    assert pd.read_csv("out.csv", dtype=str)["night"].tolist()[::20] == [first, *map(str, range(1, 12))]


@pytest.mark.parametrize("data", ["evenings.csv", "evenings.parquet"])
def test_answers_are_in_the_order_of_the_rows(run, casino, data) -> None:
    code, _, err = run("decode", "casino.json", data, *ASKED, "-o", "path.parquet", "--keep", "remark")
    assert code == 0, err
    found = pd.read_parquet("path.parquet")
    assert list(found.columns) == ["evening", "time", "remark", "die"]
    assert found["evening"].tolist() == casino["evening"].tolist()
    assert found["time"].astype(int).tolist() == casino["time"].tolist()
    assert found["remark"].tolist() == casino["remark"].tolist()
    expected = CASINO.decode(evenings())
    assert found["die"].tolist() == expected["die"].to_pylist()

    assert run("smooth", "casino.json", data, *ASKED, "-o", "smooth.csv")[0] == 0
    smoothed = pd.read_csv("smooth.csv")
    assert list(smoothed.columns) == ["evening", "time", "die=fair", "die=loaded"]
    assert smoothed["die=loaded"].to_numpy() == pytest.approx(CASINO.smooth(evenings())["die=loaded"].to_numpy(), rel=1e-12)
    assert run("filter", "casino.json", data, *ASKED, "-o", "filter.csv.gz")[0] == 0
    filtered = pd.read_csv("filter.csv.gz")
    assert filtered["die=loaded"].to_numpy() == pytest.approx(CASINO.filter(evenings())["die=loaded"].to_numpy(), rel=1e-12)


def test_several_paths_and_each_cell_by_itself(run, casino) -> None:
    code, out, _ = run("decode", "casino.json", "evenings.csv", *ASKED, "--best", 2)
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "evening,time,die_1,log_prob_1,die_2,log_prob_2"
    first, second = CASINO.decode(evenings(), 2)
    label, rank = lines[1].split(",")[0], {"mon": 0, "tue": 1, "wed": 2}
    assert float(lines[1].split(",")[3]) == pytest.approx(first.log_prob[rank[label]])
    assert float(lines[1].split(",")[5]) == pytest.approx(second.log_prob[rank[label]])
    code, out, _ = run("decode", "casino.json", "rolls.csv", "--posterior")
    assert out.split()[1:] == CASINO.posterior_decode(sf.sequences("rolls.csv", variables={"roll": ROLL}))["die"].to_pylist()


def test_forecast_score_sample_show_convert(run, casino) -> None:
    code, out, err = run("forecast", "casino.json", "rolls.csv", "--steps", 3)
    assert code == 0, err
    table = [line.split(",") for line in out.splitlines()]
    six = table[0].index("roll=6")
    assert [float(row[six]) for row in table[1:]] == pytest.approx([0.45065101936218793, 0.4247200331245264, 0.4026786948225141])
    code, out, err = run("forecast", "casino.json", "evenings.csv", *ASKED, "--steps", 2, "--interval", 0.9)
    assert code == 0, err
    assert [line.split(",")[0] for line in out.splitlines()[1:]] == ["mon", "mon", "tue", "tue", "wed", "wed"]

    code, out, err = run("score", "casino.json", "rolls.csv", "--json")
    assert code == 0, err
    facts = json.loads(out)
    assert facts["log-likelihood"] == pytest.approx(-103.14082608456364)
    assert facts["AIC"] == pytest.approx(-103.14082608456364 - 13)
    assert facts["BIC"] == pytest.approx(-103.14082608456364 - 6.5 * np.log(60))
    assert (facts["sequences"], facts["steps"], facts["parameters"]) == (1, 60, 13)
    code, out, _ = run("score", "casino.json", "evenings.csv", *ASKED)
    assert "log-likelihood" in out

    code, _, err = run("sample", "casino.json", "-n", 3, "--length", 5, "--seed", 1, "-o", "drawn.csv")
    assert code == 0, err
    drawn = pd.read_csv("drawn.csv")
    assert len(drawn) == 15
    assert set(drawn.columns) == {"sequence", "step", "die", "roll"}
    assert "15 rows of 4 columns" in err
    again = sf.sequences("drawn.csv", by="sequence", order="step", variables={"roll": ROLL, "die": DIE})
    assert again.lengths.tolist() == [5, 5, 5]

    code, out, _ = run("show", "casino.json")
    assert "Chain die[-1] -> die; die -> roll" in out
    assert "p(die | die[-1])" in out
    assert "p(die[0])" in out
    assert "0.95" in out
    assert "p(roll | die)" in run("show", "casino.json", "--node", "roll")[1]
    assert '"die[-1]" -> "die"' in run("show", "casino.json", "--dot")[1]
    assert json.loads(run("show", "casino.json", "--json")[1])["suffice"] == "chain"

    assert run("convert", "casino.json", "again.json.gz")[0] == 0
    assert sf.read("again.json.gz") == CASINO
    code, _, err = run("convert", "casino.json", "casino.bif")
    assert code == 1
    assert "casino.bif: .bif holds Bayesian networks, and this is a chain: write .json" in err


def test_forecast_with_inputs(run) -> None:
    state, u, y = sf.Finite("state", ["a", "b"]), sf.Finite("u", ["off", "on"]), sf.Finite("y", ["p", "q"])
    turned = [[[0.9, 0.1], [0.1, 0.9]], [[0.2, 0.8], [0.1, 0.9]]]
    cpds = {"state": turned, "state[0]": [[0.9, 0.1], [0.1, 0.9]], "u": [0.5, 0.5], "y": [[0.8, 0.2], [0.3, 0.7]]}
    chain = Chain(sf.Template({"state": ["state[-1]", "u"], "y": ["state"], "u": []}), cpds, [state, u, y])
    sf.write(chain, "m.json")
    Path("rows.csv").write_text("id,u,y\n1,off,p\n1,on,q\n2,off,p\n", "utf-8")
    Path("next.csv").write_text("u\non\noff\n", "utf-8")
    Path("each.csv").write_text("id,u\n1,on\n1,off\n2,off\n2,off\n", "utf-8")
    steps = sf.sequences("rows.csv", by="id", variables={"u": u, "y": y})
    for given, known in (
        ("next.csv", {"u": ["on", "off"]}),
        ("each.csv", {"id": [1, 1, 2, 2], "u": ["on", "off", "off", "off"]}),
    ):
        code, out, err = run("forecast", "m.json", "rows.csv", "--by", "id", "--steps", 2, "--given", given)
        assert code == 0, err
        lines = [line.split(",") for line in out.splitlines()]
        expected = chain.forecast(steps, 2, given=known)
        at = lines[0].index("y=q")
        assert [float(line[at]) for line in lines[1:]] == pytest.approx(list(map(float, expected["y=q"])))
    code, _, err = run("forecast", "m.json", "rows.csv", "--by", "id", "--steps", 3, "--given", "next.csv")
    assert code == 1
    assert "--given has 2 rows, and there are 3 steps to forecast" in err


def test_fit_by_em(run, casino) -> None:
    words = (*ASKED, "--hidden", "die=2", "--starts", 2, "--seed", 3, "--finite", "roll")
    code, _, err = run("fit", TEMPLATE, "evenings.csv", "-o", "m.json", *words)
    assert code == 0, err
    assert "of 2 starts led to the best optimum" in err
    assert "60 steps of 3 sequences" in err
    chain = sf.read("m.json")
    assert chain.variables["die"].states == ("0", "1")
    assert chain.hidden == ("die",)
    data = sf.sequences("evenings.csv", by="evening", order="time").with_variables({"roll": chain.variables["roll"]})
    expected = sf.em(TEMPLATE, data, hidden=[sf.Finite("die", ["0", "1"])], starts=2, seed=3).model
    assert chain["roll"].probs == pytest.approx(expected["roll"].probs)

    words = ("--hidden", "die=fair,loaded", "--starts", 1, "--max-iter", 3, "--integers", "finite", "--first", "stationary")
    code, _, err = run("fit", TEMPLATE, "rolls.csv", "-o", "n.json", *words)
    assert code == 0, err
    assert sf.read("n.json").variables["die"].states == ("fair", "loaded")
    code, _, err = run("fit", "n.json", "rolls.csv", "-o", "o.json", "--starts", 1, "--max-iter", 3, "--prior", "bdeu:2")
    assert code == 0, err
    assert sf.read("o.json").template == CASINO.template
    assert sf.read("o.json").hidden == ("die",)
    assert type(sf.read("o.json").first_slices).__name__ == "Stationary"


def test_fit_to_complete_sequences(run, casino) -> None:
    table = CASINO.sample(4, 50, 0)
    table.to_pandas().to_csv("seen.csv", index=False)
    asked = ("--by", "sequence", "--order", "step", "--finite", "roll=1,2,3,4,5,6")
    code, _, err = run("fit", TEMPLATE, "seen.csv", "-o", "m.json", *asked, "--prior", "dirichlet:1", "--statistics", "s.stats")
    assert code == 0, err
    assert "fitted from 200 steps, posterior mean" in err
    expected = sf.fit(
        TEMPLATE, sf.sequences("seen.csv", by="sequence", order="step", variables={"roll": ROLL}), prior=sf.Dirichlet(1)
    )
    assert sf.read("m.json") == expected
    code, _, err = run("fit", TEMPLATE, "s.stats", "-o", "again.json", "--prior", "dirichlet:1")
    assert code == 0, err
    assert sf.read("again.json") == expected
    code, _, err = run("fit", "roll[-1] -> roll", "seen.csv", "-o", "n.json", *asked, "--first", "stationary")
    assert code == 0, err
    assert type(sf.read("n.json").first_slices).__name__ == "Stationary"


@pytest.fixture
def learned(run) -> sf.Template:
    """Ten sequences of two variables, of which one follows the other a step later."""
    rng = np.random.default_rng(0)
    lines = ["id,t,a,b"]
    for i in range(10):
        a = rng.random(100) < 0.5
        b = np.where(rng.random(100) < 0.9, np.roll(a, 1), ~np.roll(a, 1))
        lines += [f"{i},{t},{int(a[t])},{int(b[t])}" for t in range(100)]
    Path("rows.csv").write_text("\n".join([*lines, ""]), "utf-8")
    return sf.Template("a; a[-1] -> b")


def test_learn_a_template(run, learned) -> None:
    asked = ("learn", "rows.csv", "--by", "id", "--order", "t", "--integers", "finite")
    code, out, err = run(*asked, "--lags", 2, "-o", "m.json")
    assert code == 0, err
    assert "a[-1] -> b" in out
    chain = sf.read("m.json")
    assert chain.template == learned
    assert chain["b"].probs == pytest.approx(np.array([[0.9, 0.1], [0.1, 0.9]]), abs=0.05)
    code, out, err = run(*asked, "--json", "--explain", "--method", "hill-climb", "--forbid", "b[-1],b")
    assert code == 0, err
    facts = json.loads(out)
    assert facts["template"] == [["a[-1]", "b"]]
    assert facts["explanations"]
    code, out, err = run(*asked, "--bootstrap", 3)
    assert code == 0, err
    assert "a[-1]" in out
    assert run(*asked, "--dry-run")[0] == 0


def test_conll(run) -> None:
    Path("tagged.conll").write_text("the\tD\ndog\tN\nruns\tV\n\na\tD\ncat\tN\nsleeps\tV\n\n", "utf-8")
    words = ("--by", "sentence", "--prior", "dirichlet:0.1")
    code, _, err = run("fit", "column2[-1] -> column2 -> column1", "tagged.conll", "-o", "tagger.json", *words)
    assert code == 0, err
    assert "6 steps" in err
    Path("new.conll").write_text("the\ncat\nruns\n\ncat\nsleeps\n", "utf-8")
    code, out, err = run("decode", "tagger.json", "new.conll", "--by", "sentence")
    assert code == 0, err
    assert out.splitlines() == ["sentence,column2", "1,D", "1,N", "1,V", "2,N", "2,V"]


def test_labels_and_missing_cells(run, casino) -> None:
    rows = pd.DataFrame({"roll": list(ROLLS), "die": ["fair"] * 20 + [""] * 36 + ["loaded"] * 4})
    rows.loc[10:14, "roll"] = ""
    rows.to_csv("some.csv", index=False)
    words = ("--hidden", "die=fair,loaded", "--max-iter", 5, "--finite", "roll=1,2,3,4,5,6")
    code, _, err = run("fit", TEMPLATE, "some.csv", "-o", "m.json", *words)
    assert code == 0, err
    code, out, err = run("smooth", "m.json", "some.csv")
    assert code == 0, err
    assert out.splitlines()[0].split(",")[:3] == ["die=fair", "die=loaded", "roll=1"]
    assert [float(p) for p in out.splitlines()[1].split(",")[:2]] == pytest.approx([1, 0], abs=1e-12)


def test_a_plain_graph_over_columns_with_lagged_names(run) -> None:
    Path("lagged.csv").write_text("x[-1],x\na,b\nb,a\na,a\nb,b\n", "utf-8")
    code, _, err = run("fit", '"x[-1]" -> x', "lagged.csv", "-o", "m.json")
    assert code == 0, err
    assert isinstance(sf.read("m.json"), sf.BayesNet)


def test_gaps(run, casino) -> None:
    Path("gap.csv").write_text("day,roll\n1,6\n2,6\n5,1\n6,2\n", "utf-8")
    code, out, err = run("smooth", "casino.json", "gap.csv", "--order", "day")
    assert (code, out) == (1, "")
    assert "has no row between day 2 and 5, where 2 steps of 1 would be: --gaps missing puts such steps in" in err
    code, out, err = run("smooth", "casino.json", "gap.csv", "--order", "day", "--gaps", "missing")
    assert code == 0, err
    assert [line.split(",")[0] for line in out.splitlines()] == ["day", "1", "2", "5", "6"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("decode", "casino.json", "evenings.csv", "--by", "evening"),
            "line 5: the sequence 'mon' goes on after rows",
        ),
        (("decode", "casino.json", "evenings.csv", "--by", "evenning", "--order", "time"), "did you mean 'evening'"),
        (("decode", "casino.json", "evenings.csv", "--by", "evening", "--order", "evening"), "--by and --order are both"),
        (("decode", "casino.json", "twice.csv", "--order", "time"), "time"),
        (("decode", "casino.json", "seven.csv"), "'7'"),
        (("decode", "casino.json", "other.csv"), "none of the chain's columns"),
        (("decode", "casino.json", "near.csv"), "did you mean 'rol'"),
        (("decode", "casino.json", "rolls.csv", "-o", "rolls.csv"), "is where the rows come from"),
        (("decode", "casino.json", "rolls.csv", "-o", "path.txt"), "rows are written to .csv"),
        (("decode", "casino.json", "rolls.csv", "--keep", "rol"), "no column 'rol' to keep"),
        (("decode", "casino.json", "rolls.csv", "--best", "2", "--posterior"), "exclude each other"),
        (("decode", "casino.json", "rolls.csv", "--gaps", "leave"), "--gaps is refuse or missing, not 'leave'"),
        (("decode", "casino.json", "rolls.csv", "--gaps", "missing"), "give --order"),
        (("decode", "casino.json", "rows.stats"), "holds statistics"),
        (("decode", "asia", "rolls.csv"), "asia holds a network of rows, not a chain"),
        (("smooth", "casino.json", "rolls.csv", "--interval", "90"), "0 and 1"),
        (("predict", "casino.json", "rolls.csv", "--target", "die"), "suffice decode"),
        (("query", "casino.json", "P(die)"), "suffice decode, smooth, filter and forecast"),
        (("compare", "casino.json", "asia"), "casino.json holds a chain"),
        (("score", "asia", "rolls.csv", "--by", "x"), "--by and --order are for chains"),
        (("sample", "casino.json", "-n", "3"), "give --length"),
        (("sample", "asia", "-n", "3", "--length", "2"), "leave --length out"),
        (("show", "casino.json", "--node", "dice"), "the chain has no node 'dice'; did you mean 'die'"),
        (("fit", TEMPLATE, "rolls.csv", "-o", "m.bif"), "m.bif: .bif holds Bayesian networks, and this is a chain"),
        (("fit", TEMPLATE, "rolls.csv", "-o", "m.json"), "--hidden die=3, or --hidden die=real"),
        (("fit", TEMPLATE, "rolls.csv", "-o", "m.json", "--hidden", "die=1"), "--hidden takes a name and at least two states"),
        (("fit", TEMPLATE, "rolls.csv", "-o", "m.json", "--hidden", "dye=2"), "'dye' is not in the template; did you mean 'die'"),
        (("fit", TEMPLATE, "rolls.csv", "-o", "m.json", "--hidden", "die=2", "--first", "last"), "--first is free or stationary"),
        (("fit", TEMPLATE, "rolls.csv", "-o", "m.json", "--shared", "die,roll"), "--shared is for rows, not for sequences"),
        (("fit", TEMPLATE, "rolls.csv", "-o", "m.json", "--hidden", "die=2", "--statistics", "s.stats"), "only expected"),
        (("fit", "die -> die[-1]", "rolls.csv", "-o", "m.json"), "an edge into the past"),
        (("fit", "roll", "rolls.csv", "-o", "m.json", "--first", "free"), "there is no file 'roll'"),
        (("fit", "roll -> x", "rolls.csv", "-o", "m.json", "--first", "free"), "--first is for sequences: give --by or --order"),
        (("learn", "rolls.csv", "--gaps", "missing"), "--gaps is for sequences"),
        (("learn", "evenings.csv", *ASKED, "-o", "m.bif"), "m.bif: .bif holds Bayesian networks"),
        (("learn", "evenings.csv", *ASKED, "--hidden", "die=2"), "--hidden is for rows, not for sequences"),
    ],
)
def test_what_is_refused(run, casino, words, message) -> None:
    Path("twice.csv").write_text("time,roll\n1,6\n1,5\n", "utf-8")
    Path("seven.csv").write_text("roll\n6\n7\n", "utf-8")
    Path("other.csv").write_text("score\n1\n", "utf-8")
    Path("near.csv").write_text("rol\n1\n2\n", "utf-8")
    code, out, err = run(*words)
    assert (code, out) == (1, "")
    assert message in err.rpartition("error: ")[2]
    assert not Path("m.json").exists()


def test_an_impossible_sequence_is_refused(run) -> None:
    x = sf.Finite("x", ["a", "b"])
    y = sf.Finite("y", ["u", "v"])
    chain = Chain("x[-1] -> x -> y", {"x": np.eye(2), "x[0]": [0.5, 0.5], "y": np.eye(2)}, [x, y])
    sf.write(chain, "m.json")
    Path("rows.csv").write_text("id,y\n1,u\n1,v\n2,u\n2,u\n", "utf-8")
    code, out, err = run("decode", "m.json", "rows.csv", "--by", "id")
    assert (code, out) == (1, "")
    assert "sequence '1' is impossible under the chain: what is seen up to step 2 has the probability zero" in err


def test_help_names_the_options(run) -> None:
    for command in ("fit", "learn", "decode", "smooth", "filter", "forecast", "score"):
        code, out, _ = run(command, "--help")
        assert code == 0
        assert "--by" in out
        assert "--order" in out
    assert {"decode", "smooth", "filter", "forecast"} <= set(run("--help")[1].split())


def test_hidden_numbers(run) -> None:
    cpds = {
        "level": sf.Gaussian(0.0, {"level[-1]": 1.0}, 1469.1),
        "level[0]": sf.Gaussian(1000.0, {}, 1e6),
        "flow": sf.Gaussian(0.0, {"level": 1.0}, 15099.0),
    }
    sf.write(Chain("level[-1] -> level -> flow", cpds), "nile.json")
    assert sf.read("nile.json") == Chain("level[-1] -> level -> flow", cpds)
    pd.DataFrame({"year": range(1871, 1971), "flow": NILE.split()}).sort_values("flow").to_csv("nile.csv", index=False)
    asked = ("nile.json", "nile.csv", "--order", "year")
    assert float(json.loads(run("score", *asked, "--json")[1])["log-likelihood"]) == pytest.approx(-640.3805408207)
    code, _, err = run("smooth", *asked, "--interval", 0.9, "-o", "level.csv", "--keep", "flow")
    assert code == 0, err
    level = pd.read_csv("level.csv").set_index("year")
    assert list(level.columns) == ["flow", "level", "level_sd", "level_lower", "level_upper"]
    assert level["level"][[1871, 1898, 1970]].tolist() == pytest.approx([1111.21986307, 999.58511667, 798.37029261])
    code, out, err = run("forecast", *asked, "--steps", 1)
    assert code == 0, err
    found = dict(zip(*(line.split(",") for line in out.splitlines()), strict=True))
    assert (float(found["flow"]), float(found["flow_sd"]) ** 2) == pytest.approx((798.37029261, 20600.2579418))
    assert found["year"] == "1971"
    words = ("--order", "year", "--hidden", "level=real", "--first", "stationary", "--starts", 1, "--max-iter", 3)
    code, _, err = run("fit", "level[-1] -> level -> flow", "nile.csv", "-o", "m.json", *words)
    assert code == 0, err
    assert sf.read("m.json").variables["level"] == sf.Real("level")


def test_the_demo_of_sequences(run) -> None:
    code, out, _ = run("demo", "sequences")
    assert code == 0
    assert "-106.4092" in out
    assert "0.4507, 0.4247, 0.4027" in out
    assert "-633.4646" in out
    code, _, err = run("demo", "nothing")
    assert code == 1
    assert "demo of networks, and one of sequences" in err


def test_fit_with_what_is_fixed(run, casino) -> None:
    """The Python call and the command line agree; what is fixed stays, and is not counted."""
    how = ("--hidden", "die=fair,loaded", "--start", "casino.json", "--max-iter", "20", "--tol", "0")
    code, _, err = run("fit", TEMPLATE, "rolls.csv", "-o", "m.json", *how, "--fixed", "roll", "--fixed", "die[0]")
    assert code == 0, err
    found = sf.read("m.json")
    data = sf.sequences("rolls.csv", variables={"roll": ROLL})
    run_ = sf.em(TEMPLATE, data, hidden=[DIE], start=CASINO, fixed=["roll", "die[0]"], max_iter=20, tol=0)
    assert found == run_.model
    assert (found.n_parameters, dict(found.fixed)) == (2, {"roll": True, "die[0]": True})
    assert found["roll"].probs.tolist() == CASINO["roll"].probs.tolist()
    code, _, err = run("fit", "casino.json", "rolls.csv", "-o", "n.json", "--max-iter", "20", "--tol", "0", "--fixed", "roll")
    assert code == 0, err
    assert sf.read("n.json")["roll"].probs.tolist() == CASINO["roll"].probs.tolist()


def test_fit_with_entries_that_are_fixed(run) -> None:
    lines = {"level": sf.Gaussian(0.0, {"level[-1]": 1.0}, 1469.1), "flow": sf.Gaussian(0.0, {"level": 1.0}, 15099.0)}
    sf.write(Chain("level[-1] -> level -> flow", lines, first=sf.chains.Diffuse()), "start.json")
    Path("nile.csv").write_text("\n".join(["flow", *NILE.split(), ""]), "utf-8")
    fixed = ("--fixed", "level=intercept,coefficients", "--fixed", "flow=intercept,level")
    how = ("--hidden", "level=real", "--start", "start.json", "--first", "diffuse", "--real", "flow", "--max-iter", "5")
    code, _, err = run("fit", "level[-1] -> level -> flow", "nile.csv", "-o", "m.json", *how, *fixed)
    assert code == 0, err
    found = sf.read("m.json")
    assert found.n_parameters == 2
    assert found["level"].coefficients.tolist() == [1.0]
    code, out, err = run("show", "m.json")
    assert (code, err) == (0, "")
    assert "1 (2 fixed)" in out


def test_rows_with_what_is_fixed(run) -> None:
    """Complete rows need EM, too, if something is fixed; statistics are refused."""
    sf.write(
        sf.BayesNet("a -> b", {"a": [0.5, 0.5], "b": [[0.9, 0.1], [0.3, 0.7]]}, {"a": ["x", "y"], "b": ["u", "v"]}), "bn.json"
    )
    Path("rows.csv").write_text("a,b\nx,u\nx,v\ny,v\nx,u\n", "utf-8")
    code, _, err = run("fit", "bn.json", "rows.csv", "-o", "m.json", "--fixed", "b")
    assert code == 0, err
    found = sf.read("m.json")
    assert found["b"].probs.tolist() == [[0.9, 0.1], [0.3, 0.7]]
    assert found["a"].probs == pytest.approx([0.75, 0.25])
    assert run("fit", "a -> b", "rows.csv", "-o", "n.json", "--statistics", "s.stats")[0] == 0
    code, out, err = run("fit", "bn.json", "s.stats", "-o", "m.json", "--fixed", "b")
    assert (code, out) == (1, "")
    assert "--fixed is of EM, which needs the rows: s.stats has statistics" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--fixed", "roll"), "--fixed keeps distributions as they are in a model: give it, --start MODEL"),
        (("--fixed", "rol", "--start", "casino.json"), "fixed names 'rol', which has no parameters here; did you mean 'roll'?"),
        (("--fixed", "roll=variance", "--start", "casino.json"), "only those of Gaussians can be: --fixed roll"),
        (("--fixed", "roll", "--fixed", "roll", "--start", "casino.json"), "--fixed names 'roll' twice"),
        (("--fixed", "=x", "--start", "casino.json"), "--fixed takes a node"),
        (("--start", "rolls.csv"), "rolls.csv"),
    ],
)
def test_what_is_fixed_in_vain_is_refused(run, casino, words, message) -> None:
    code, out, err = run("fit", TEMPLATE, "rolls.csv", "-o", "m.json", "--hidden", "die=fair,loaded", *words)
    assert (code, out) == (1, "")
    assert message in err
