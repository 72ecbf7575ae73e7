"""`suffice query`, called as a user calls it: its answers are those of the Python interface."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import SufficeError
from suffice.interfaces.cli import words
from suffice.numerics.inference.sampling.sampling import Gibbs, LikelihoodWeighting


@pytest.fixture
def ask(run):
    """Ask, successfully: what is printed, or the JSON object."""

    def call(*given: object) -> Any:
        code, out, err = run("query", *given)
        assert code == 0, err
        return json.loads(out) if "--json" in given else out.removesuffix("\n")

    return call


@pytest.fixture
def asia() -> sf.BayesNet:
    return sf.load("asia")


@pytest.fixture
def hybrid(run) -> sf.BayesNet:
    """x -> age group; x -> y -> z, with names that need quotes."""
    bn = sf.BayesNet(
        "'my x' -> y -> z; 'my x' -> age".replace("'", '"'),
        {
            "my x": [0.75, 0.25],
            "y": sf.Gaussian([0.0, 2.0], variance=[1.0, 1.0]),
            "z": sf.Gaussian(1.0, {"y": 0.5}, variance=0.25),
            "age": [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]],
        },
        variables=[sf.Finite("my x", ["so, so", "it's"]), sf.Finite("age", ["<18", "[18,65)", ">=65"], cuts=[18, 65])],
    )
    sf.write(bn, "hybrid.json")
    return bn


def test_the_table_is_the_answer_of_python(ask, asia) -> None:
    assert ask("asia", "P(lung | smoke=yes)") == repr(asia.query("lung", {"smoke": "yes"}))
    assert ask("asia", "dysp, lung | xray = yes, asia=no") == repr(asia.query(["dysp", "lung"], {"xray": "yes", "asia": "no"}))
    assert ask("asia", "P(lung)") == repr(asia.query("lung"))
    assert ask("asia", "P(either | xray=[0.2, 0.8])") == repr(asia.query("either", {"xray": (0.2, 0.8)}))


def test_states_before_the_bar_pick_probabilities(ask, asia) -> None:
    joint = asia.query(["lung", "bronc"], {"dysp": "yes"})
    assert float(ask("asia", "P(lung=yes, bronc=no | dysp=yes)")) == joint["yes", "no"]
    facts = ask("asia", "P(lung, bronc=no | dysp=yes)", "--json")
    assert facts["probabilities"] == [
        {"states": {"lung": s, "bronc": "no"}, "probability": joint[s, "no"]} for s in asia.variables["lung"].states
    ]
    assert len(ask("asia", "P(lung, bronc=no | dysp=yes)").splitlines()) == 5


def test_likelihoods_are_weighed_in(ask, asia) -> None:
    def p(*facts: str) -> float:
        given = dict(f.split("=") for f in facts)
        return float(np.exp(asia.log_prob_of(given)))

    seen = 0.2 * p("lung=yes", "xray=yes") + 0.8 * p("lung=yes", "xray=no")
    ruled = 0.2 * p("lung=no", "xray=yes") + 0.8 * p("lung=no", "xray=no")
    facts = ask("asia", "P(lung=yes | xray=[0.2, 0.8])", "--json")
    assert facts["probabilities"][0]["probability"] == pytest.approx(seen / (seen + ruled), abs=1e-12)
    assert facts["log_prob_of_evidence"] == pytest.approx(np.log(seen + ruled), abs=1e-12)


def test_large_answers_are_printed_whole(ask) -> None:
    alarm = sf.load("alarm")
    names = ["HR", "BP", "CO", "LVFAILURE"]
    assert len(ask("alarm", ", ".join(names)).splitlines()) == 3 + alarm.query(names).probs.size
    assert len(ask("alarm", "--all").splitlines()) == 3 + len(alarm)


def test_json(ask, asia) -> None:
    facts = ask("asia", "P(lung | smoke=yes, xray=[0.2, 0.8])", "--json")
    given = {"smoke": "yes", "xray": [0.2, 0.8]}
    assert facts == {
        "targets": ["lung"],
        "states": {"lung": ["yes", "no"]},
        "probabilities": [
            {"states": {"lung": s}, "probability": p} for s, p in asia.query("lung", {"smoke": "yes", "xray": [0.2, 0.8]}).items()
        ],
        "how": "exact",
        "evidence": given,
        "do": {},
        "interval": None,
        "log_prob_of_evidence": asia.log_prob_of(given),
    }


@pytest.mark.parametrize("question", ["xray=yes, dysp=no", "| xray=yes, dysp=no", "P(| xray=yes, dysp=no)"])
def test_most_probable_states_and_all_marginals_need_only_evidence(ask, asia, question) -> None:
    given = {"xray": "yes", "dysp": "no"}
    best, every = asia.most_probable(given), asia.marginals(given)
    assert ask("asia", question, "--mpe") == repr(best)
    assert ask("asia", question, "--all") == repr(every)
    facts = ask("asia", question, "--mpe", "--json")
    assert facts["most_probable"] == dict(best)
    assert facts["log_prob"] == pytest.approx(best.log_prob)
    assert facts["log_prob_of_evidence"] == pytest.approx(every.log_prob_of_evidence)
    facts = ask("asia", question, "--all", "--json")
    assert facts["targets"] == list(asia)
    for name in asia:
        assert [r["probability"] for r in facts["marginals"][name]["probabilities"]] == every[name].probs.tolist()


def test_nothing_given(ask, asia) -> None:
    assert ask("asia", "--mpe") == repr(asia.most_probable())
    assert ask("asia", "--all") == repr(asia.marginals())
    assert ask("asia", "P(smoke)", "--json")["log_prob_of_evidence"] == 0.0


def test_the_most_probable_states_of_some(ask, asia) -> None:
    best = asia.most_probable({"dysp": "yes"}, targets=["smoke", "bronc"])
    assert ask("asia", "smoke, bronc | dysp=yes", "--mpe", "--json")["most_probable"] == dict(best)


def test_interventions(run, ask, asia) -> None:
    after = asia.do({"lung": "yes", "tub": [0.5, 0.5]})
    for options in (["--do", "lung=yes", "--do", "tub=[0.5,0.5]"], ["--do", "lung=yes, tub=[0.5,0.5]"]):
        code, out, err = run("query", "asia", "P(smoke | xray=yes)", *options)
        assert (code, out) == (0, repr(after.query("smoke", {"xray": "yes"})) + "\n")
        assert out.startswith("p(smoke | do(lung=yes, tub~(0.5, 0.5)), xray=yes), exact\n")
        assert err == ""
    assert "given do(lung=yes), xray=yes" in run("query", "asia", "xray=yes", "--all", "--do", "lung=yes")[1]
    assert "given do(lung=yes);" in run("query", "asia", "--mpe", "--do", "lung=yes")[1]
    facts = ask("asia", "P(smoke=yes)", "--do", "lung=yes", "--json")
    assert facts["do"] == {"lung": "yes"}
    assert facts["probabilities"][0]["probability"] == pytest.approx(0.5)


def test_intervals_come_from_the_posterior_that_a_file_keeps(run, ask, asia) -> None:
    bn = sf.fit(asia.dag, asia.sample(500, seed=0), prior=sf.BDeu(1))
    sf.write(bn, "fitted.json")
    sf.write(bn, "fitted.bif")
    options = ["--interval", 0.9, "--draws", 1500, "--seed", 7]
    expected = bn.query("lung", {"smoke": "yes"}, interval=0.9, draws=1500, seed=7)
    assert ask("fitted.json", "P(lung | smoke=yes)", *options) == repr(expected)
    facts = ask("fitted.json", "P(lung=yes | smoke=yes)", *options, "--json")
    (record,) = facts["probabilities"]
    assert facts["interval"] == 0.9
    assert record["lower"] == expected.interval.lower[list(expected).index("yes")]
    assert record["lower"] < record["probability"] < record["upper"]
    assert "lower" in ask("fitted.json", "P(lung=yes | smoke=yes)", *options)
    code, out, err = run("query", "fitted.bif", "P(lung | smoke=yes)", *options)
    assert (code, out) == (1, "")
    assert "suffice fit fitted.bif DATA -o FITTED.json --prior bdeu:1" in err


@pytest.mark.parametrize(("word", "method"), [("lw:2000", LikelihoodWeighting(2000)), ("gibbs:2000", Gibbs(2000))])
def test_draws(ask, word, method) -> None:
    alarm = sf.load("alarm")
    expected = alarm.query("HR", {"BP": "LOW"}, method=method, seed=3)
    assert ask("alarm", "P(HR | BP=LOW)", "--method", word, "--seed", 3) == repr(expected)
    facts = ask("alarm", "P(HR | BP=LOW)", "--method", word, "--seed", 3, "--json")
    assert [r["standard_error"] for r in facts["probabilities"]] == expected.error.tolist()
    assert facts["effective_sample_size"] == expected.effective_sample_size
    assert facts["log_prob_of_evidence"] is None
    assert "standard_error" in ask("alarm", "P(HR=LOW | BP=LOW)", "--method", word, "--json")["probabilities"][0]


def test_numbers_and_quotes(ask, hybrid) -> None:
    assert ask("hybrid.json", "P('my x' | z=1.5)") == repr(hybrid.query("my x", {"z": 1.5}))
    assert ask("hybrid.json", "P(y | 'my x'=\"it's\")") == repr(hybrid.query("y", {"my x": "it's"}))
    assert ask("hybrid.json", "P(y | age='[18,65)', \"my x\"='so, so')") == repr(
        hybrid.query("y", {"age": "[18,65)", "my x": "so, so"})
    )
    assert float(ask("hybrid.json", "P(age=>=65 | y=-1e-1)")) == hybrid.query("age", {"y": -0.1})[">=65"]
    assert ask("hybrid.json", "P(z | age=20)", "--json")["mean"] == ask("hybrid.json", "P(z | age='[18,65)')", "--json")["mean"]
    assert ask("hybrid.json", "P(z)", "--do", "y=2") == repr(hybrid.do({"y": 2.0}).query("z"))


def test_mixtures_in_json(ask, hybrid) -> None:
    facts, answer = ask("hybrid.json", "P(z, y | age=<18)", "--json"), hybrid.query(["z", "y"], {"age": "<18"})
    assert facts["targets"] == ["z", "y"]
    assert facts["mean"] == dict(zip(["z", "y"], answer.mean.tolist(), strict=True))
    assert facts["sd"]["z"] == pytest.approx(np.sqrt(answer.covariance[0, 0]))
    assert [c["weight"] for c in facts["components"]] == answer.weights.tolist()
    assert np.array([c["covariance"] for c in facts["components"]]).tolist() == answer.parts.covariances.tolist()
    facts = ask("hybrid.json", "P(y, 'my x' | z=1)", "--json")
    assert facts["states"] == {"my x": ["so, so", "it's"]}
    assert {c["states"]["my x"] for c in facts["components"]} == {"so, so", "it's"}
    facts = ask("hybrid.json", "P(y, 'my x' | z=1)", "--method", "lw:1000", "--json")
    assert facts["mean"]["y"] == pytest.approx(hybrid.query("y", {"z": 1.0}).mean, abs=0.3)
    assert facts["targets"] == ["y", "my x"]
    assert [set(r) for r in facts["probabilities"]] == [{"states", "probability", "standard_error"}] * 2
    assert facts["standard_error"]["y"] > 0
    facts = ask("hybrid.json", "z=1", "--all", "--json")
    assert facts["marginals"]["y"]["mean"]["y"] == pytest.approx(hybrid.query("y", {"z": 1.0}).mean)
    facts = ask("hybrid.json", "--mpe", "--json")
    assert isinstance(facts["most_probable"]["y"], float)
    assert facts["density"] == hybrid.most_probable().probability
    assert "probability" not in facts
    assert ask("hybrid.json", "--mpe") == repr(hybrid.most_probable())
    assert ask("hybrid.json", "z=1", "--all") == repr(hybrid.marginals({"z": 1.0}))


def test_intervals_of_means(ask, hybrid) -> None:
    bn = sf.fit(hybrid.dag, hybrid.sample(200, seed=0), prior=(sf.BDeu(1), sf.NormalInverseGamma()))
    sf.write(bn, "fitted.json")
    facts = ask("fitted.json", "P(z, y | age=<18)", "--interval", 0.9, "--json")
    assert facts["lower"]["z"] < facts["mean"]["z"] < facts["upper"]["z"]
    assert ask("fitted.json", "P(z)", "--interval", 0.9) == repr(bn.query("z", interval=0.9))


def test_what_is_too_large_can_be_drawn(run) -> None:
    """Seven variables of 60 states, every two of them with a child, which ties all together: 60⁷ cells."""
    roots = [sf.Finite(f"x{i}", [str(k) for k in range(60)]) for i in range(7)]
    pairs = {f"y{a.name}{b.name}": [a.name, b.name] for a, b in combinations(roots, 2)}
    tables = {v.name: np.full(60, 1 / 60) for v in roots} | {n: np.full((60, 60, 2), 0.5) for n in pairs}
    bn = sf.BayesNet(pairs, tables, variables=[*roots, *(sf.Finite(n, ["no", "yes"]) for n in pairs)])
    sf.write(bn, "tied.json")
    code, out, err = run("query", "tied.json", ", ".join(f"{n}=yes" for n in pairs), "--all")
    assert (code, out) == (1, "")
    assert "--method lw:10000" in err
    code, out, err = run("query", "tied.json", ", ".join(f"{n}=yes" for n in pairs), "--mpe")
    assert (code, out) == (1, "")
    assert "--method" not in err


def test_columns_of_numbers_do_not_share_names_with_targets(ask) -> None:
    bn = sf.BayesNet("probability", {"probability": [0.25, 0.75]}, variables=[sf.Finite("probability", ["a", "b"])])
    sf.write(bn, "odd.json")
    assert ask("odd.json", "P(probability)") == repr(bn.query("probability"))
    assert ask("odd.json", "P(probability)").splitlines()[1].split() == ["probability", "probability_"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["asia", "P(lung | smoke=yes"], "column 19"),
        (["asia", "P(lung | smok=yes)"], "did you mean 'smoke'?"),
        (["asia", "P(lungs | smoke=yes)"], "did you mean 'lung'?"),
        (["asia", "P(lung | smoke=yess)"], "did you mean 'yes'?"),
        (["asia", "P(lung=maybe | smoke=yes)"], "'maybe'"),
        (["asia", "P(lung | lung=yes)"], "'lung'"),
        (["asia", "P(lung | smoke=yes, smoke=no)"], "twice"),
        (["asia", "P(lung | smoke=[0.2])"], "'smoke'"),
        (["asia", "P(lung | smoke=[0.2, -1])"], "'smoke'"),
        (["asia", "P(lung | smoke=[0.2, nan])"], "'smoke'"),
        (["asia", "P(lung | either=no, tub=yes)"], "probability zero"),
        (["asia", "either=no, tub=yes", "--mpe"], "probability zero"),
        (["asia", "either=no, tub=yes", "--all"], "probability zero"),
        (["asia"], "no target"),
        (["asia", "| smoke=yes"], "no target"),
        (["asia", "P(lung)", "--all"], "'lung'"),
        (["asia", "lung=yes | smoke=yes", "--mpe"], "'lung' without =yes"),
        (["asia", "smoke=yes", "--mpe", "--all"], "exclude each other"),
        (["asia", "smoke=yes", "--mpe", "--interval", "0.9"], "exclude each other"),
        (["asia", "P(lung)", "--method", "lw", "--interval", "0.9"], "exclude each other"),
        (["asia", "P(lung)", "--method", "magic"], "lw:10000"),
        (["asia", "P(lung)", "--method", "lw:many"], "lw:many"),
        (["asia", "P(lung)", "--method", "lw:0"], "of at least 1"),
        (["asia", "P(lung)", "--interval", "95"], "between 0 and 1"),
        (["asia", "P(lung)", "--interval", "0.9"], "no posterior"),
        (["asia", "P(lung)", "--do", "smoke"], "--do"),
        (["asia", "P(lung)", "--do", "smok=yes"], "did you mean 'smoke'?"),
        (["asia", "P(lung)", "--do", "smoke=yes", "--do", "smoke=no"], "twice"),
        (["nowhere.bif", "P(lung)"], "nowhere.bif"),
        (["hybrid.json", "P(y | z=high)"], "'high'"),
        (["hybrid.json", "P(y | z=inf)"], "'z'"),
        (["hybrid.json", "P(y=2 | z=1)"], "'y' is a number"),
        (["hybrid.json", "P(y, age=<18)"], "'y' is a number"),
        (["hybrid.json", "P(y | z=[0.2, 0.8])"], "'z'"),
        (["hybrid.json", "P(z | my x=so)"], "quotes"),
        (["hybrid.json", "P(y)", "--do", "y=2"], "'y' was set to a number by do(...)"),
    ],
)
def test_refusals_are_one_sentence(run, hybrid, given, said) -> None:
    code, out, err = run("query", *given)
    assert (code, out) == (1, ""), err
    assert said in err
    assert err.startswith("error: ")
    assert len(err.splitlines()) == 1


def test_usage_errors_are_2(run) -> None:
    assert run("query")[0] == 2
    assert run("query", "asia", "P(lung)", "--seed", "-1")[0] == 2
    assert run("query", "asia", "P(lung)", "--interval", "0.9", "--draws", "999")[0] == 2
    assert run("query", "asia", "P(lung)", "P(smoke)")[0] == 2


def test_words_of_methods() -> None:
    assert words.sampler_of("exact") is None
    assert words.sampler_of("LW") == LikelihoodWeighting()
    assert words.sampler_of("gibbs:500") == Gibbs(500)
    unknown, number = "is not known", "does not take the number"
    for text, told in {"": unknown, "exact:3": unknown, "lw:-1": "whole number", "lw:1.5": number, "lw:1e4": number}.items():
        with pytest.raises(SufficeError, match=told):
            words.sampler_of(text)


def test_predict_is_a_command(run) -> None:
    sf.load("asia").sample(20, seed=0).drop_columns(["lung"]).to_pandas().to_csv("rows.csv", index=False)
    code, _, err = run("predict", "asia", "rows.csv", "--target", "lung", "-o", "out.csv")
    assert code == 0, err
    assert sf.scan("out.csv").n_rows == 20
    assert run("predict", "asia", "rows.csv")[0] == 2


def test_the_posterior_of_a_count(run) -> None:
    h = sf.Finite("h", ["a", "b"])
    sf.write(sf.BayesNet("h -> n", {"h": [0.25, 0.75], "n": sf.regressions.Rates([1.0, 5.0])}, [h, sf.Count("n")]), "counts.json")
    code, out, _ = run("query", "counts.json", "P(n)")
    assert code == 0
    assert "mean 4" in out
    code, out, _ = run("query", "counts.json", "P(n | h=b)", "--json")
    assert code == 0
    assert '"mean": {"n": 5.0}' in out
