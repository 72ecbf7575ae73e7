"""Questions to a network: against enumeration, and what is refused."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given as cases
from hypothesis import settings
from hypothesis import strategies as st

import suffice as sf
from suffice.errors import ModelError, SchemaError, TooLarge
from suffice.families.protocol.family import Interval
from suffice.models.questions.answers import Distribution, Marginals, MostProbable
from suffice.models.questions.question import evidence_codes
from tests import oracles

SEEDS = st.integers(0, 10**6)

NOTHING = [(None, "None"), (np.nan, "nan"), (np.float32("nan"), "nan"), (pd.NA, "<NA>"), (pd.NaT, "NaT")]
NOTHING += [(np.datetime64("NaT"), "NaT")]
"""What stands for a cell without a value, and how a message names it."""


def weighted(bn: sf.BayesNet, given: dict[str, Any]) -> dict[tuple[str, ...], float]:
    """p(configuration) · likelihood of the evidence, by enumeration; states in the order of bn.dag.nodes."""
    table = {}
    for states, p in oracles.joint(bn).items():
        for name, value in given.items():
            state = states[bn.dag.nodes.index(name)]
            p *= value[state] if isinstance(value, dict) else float(state == value)
        table[states] = p
    return table


def added_up(bn: sf.BayesNet, table: dict[tuple[str, ...], float], targets: list[str]) -> np.ndarray:
    result = np.zeros([bn.variables[t].n_states for t in targets])
    for states, p in table.items():
        result[tuple(bn.variables[t].code(states[bn.dag.nodes.index(t)]) for t in targets)] += p
    return result


def posed(seed: int) -> tuple[sf.BayesNet, dict[str, Any], list[str]]:
    """A network, evidence that is possible in it (a soft one among it, at times), and nodes that are not observed."""
    bn, rng = oracles.random_net(seed, n_nodes=5, zeros=seed % 2 == 1), np.random.default_rng(seed)
    configurations = [s for s, p in oracles.joint(bn).items() if p > 1e-9]
    row = dict(zip(bn.dag.nodes, configurations[rng.integers(len(configurations))], strict=True))
    names = list(rng.permutation(list(bn)))
    n = int(rng.integers(0, 4))
    given: dict[str, Any] = {name: row[name] for name in names[:n]}
    if rng.random() < 0.5:
        given[names[n]] = {s: float(rng.random() + 0.01) for s in bn.variables[names[n]].states}
    return bn, given, [str(name) for name in names[n:]]


@settings(max_examples=60, deadline=None)
@cases(SEEDS)
def test_a_query_is_what_enumeration_says(seed: int) -> None:
    bn, given, free = posed(seed)
    table = weighted(bn, given)
    for k in (1, 2):
        expected = added_up(bn, table, free[:k])
        answer = bn.query(free[:k], given)
        assert answer.names == tuple(free[:k])
        np.testing.assert_allclose(answer.probs, expected / expected.sum(), atol=1e-12)


@settings(max_examples=60, deadline=None)
@cases(SEEDS)
def test_all_marginals_are_what_enumeration_says(seed: int) -> None:
    bn, given, _ = posed(seed)
    table = weighted(bn, given)
    answers = bn.marginals(given)
    assert list(answers) == list(bn)
    assert len(answers) == len(bn)
    for name in bn:
        expected = added_up(bn, table, [name])
        np.testing.assert_allclose(answers[name].probs, expected / expected.sum(), atol=1e-12)
    assert answers.log_prob_of_evidence == pytest.approx(np.log(sum(table.values())), abs=1e-12)


@settings(max_examples=60, deadline=None)
@cases(SEEDS)
def test_the_probability_of_evidence(seed: int) -> None:
    bn, given, _ = posed(seed)
    assert bn.log_prob_of(given) == pytest.approx(np.log(sum(weighted(bn, given).values())), abs=1e-12)


@settings(max_examples=60, deadline=None)
@cases(SEEDS)
def test_the_most_probable_states_are_the_best_of_all(seed: int) -> None:
    bn, given, free = posed(seed)
    table = weighted(bn, given)
    every = [n for n in bn if n in free]
    for names, found in ((every, bn.most_probable(given)), (free[:2], bn.most_probable(given, targets=free[:2]))):
        joint = added_up(bn, table, names)
        assert list(found) == names
        codes = tuple(bn.variables[n].code(s) for n, s in found.items())
        assert joint[codes] == pytest.approx(joint.max(), rel=1e-12)
        assert found.log_prob == pytest.approx(np.log(joint.max()), abs=1e-10)
        assert found.probability == pytest.approx(joint.max() / joint.sum(), abs=1e-10)


@settings(max_examples=40, deadline=None)
@cases(SEEDS)
def test_likelihood_evidence_is_a_child_that_was_seen(seed: int) -> None:
    bn, rng = oracles.random_net(seed), np.random.default_rng(seed)
    likelihood = rng.random(bn.variables["n1"].n_states) + 0.01
    tables = {**{n: bn[n] for n in bn}, "seen": np.stack([likelihood / 2, 1 - likelihood / 2], axis=-1)}
    graph = sf.Dag([*bn.dag.edges, ("n1", "seen")], nodes=[*bn.dag.nodes, "seen"])
    child = sf.BayesNet(graph, tables, [*bn.variables.values(), sf.Finite("seen", ["yes", "no"])])
    for name in bn:
        soft = bn.query(name, given={"n1": list(likelihood / 2)})
        np.testing.assert_allclose(soft.probs, child.query(name, given={"seen": "yes"}).probs, atol=1e-12)
    assert bn.log_prob_of({"n1": likelihood / 2}) == pytest.approx(child.log_prob_of({"seen": "yes"}), abs=1e-12)


@settings(max_examples=40, deadline=None)
@cases(SEEDS)
def test_answers_do_not_depend_on_the_order_of_states_or_evidence(seed: int) -> None:
    bn, given, free = posed(seed)
    turned = {n: sf.Finite(n, v.states[::-1]) for n, v in bn.variables.items()}
    other = sf.BayesNet(bn.dag, {n: np.flip(bn[n].probs) for n in bn}, turned)
    expected, answer = bn.query(free[:2], given), other.query(free[:2], dict(reversed(given.items())))
    np.testing.assert_allclose(np.flip(answer.probs), expected.probs, atol=1e-12)
    swapped = bn.query(free[1::-1], given)
    np.testing.assert_allclose(swapped.probs.T, expected.probs, atol=1e-12)


@pytest.fixture
def sprinkler() -> sf.BayesNet:
    rain, on, wet = (sf.Finite(n, ["no", "yes"]) for n in ("rain", "on", "wet"))
    tables = {"rain": [0.8, 0.2], "on": [[0.6, 0.4], [1.0, 0.0]], "wet": [[[1.0, 0.0], [0.2, 0.8]], [[0.1, 0.9], [0.01, 0.99]]]}
    return sf.BayesNet({"on": ["rain"], "wet": ["on", "rain"]}, tables, [rain, on, wet])


def test_a_distribution_is_read_by_state(sprinkler: sf.BayesNet) -> None:
    answer = sprinkler.query("rain", {"wet": "yes"})
    p = 0.2 * 0.8 / (0.2 * 0.8 + 0.8 * 0.4 * 0.9)
    assert answer["yes"] == pytest.approx(p)
    assert answer[("yes",)] == answer[{"rain": "yes"}] == answer["yes"]
    assert isinstance(answer["yes"], float)
    assert list(answer) == answer.keys() == ["no", "yes"]
    assert dict(answer) == dict(answer.items()) == {"no": answer["no"], "yes": answer["yes"]}
    assert len(answer) == 2
    assert answer.mode == "no"
    assert answer.entropy() == pytest.approx(-p * np.log(p) - (1 - p) * np.log(1 - p))
    assert answer.how == "exact"
    assert answer.interval is answer.error is answer.effective_sample_size is None


def test_a_joint_is_read_by_tuple_or_mapping(sprinkler: sf.BayesNet) -> None:
    answer = sprinkler.query(["on", "rain"], given={"wet": "yes"})
    assert answer.names == ("on", "rain")
    assert answer.probs.shape == (2, 2)
    assert answer["yes", "no"] == answer[{"rain": "no", "on": "yes"}] == float(answer.probs[1, 0])
    assert answer.mode == ("yes", "no")
    assert list(answer) == list(itertools.product(["no", "yes"], ["no", "yes"]))
    assert answer.items()[2] == (("yes", "no"), answer["yes", "no"])
    frame = answer.to_frame()
    assert list(frame.columns) == ["on", "rain", "probability"]
    assert frame["probability"].sum() == pytest.approx(1)
    with pytest.raises(ModelError, match=r"over 'on', 'rain': give 2 states, not 'yes'"):
        answer["yes"]
    with pytest.raises(ModelError, match=r"name a state of each, not of 'on'"):
        answer[{"on": "yes"}]
    with pytest.raises(SchemaError, match=r"'rain' has no state 'nope'; did you mean 'no'"):
        answer["yes", "nope"]


def test_an_answer_does_not_change(sprinkler: sf.BayesNet) -> None:
    answer = sprinkler.query("rain")
    with pytest.raises(ValueError, match="read-only"):
        answer.probs[0] = 1.0
    with pytest.raises(AttributeError):
        answer.probs = np.zeros(2)
    with pytest.raises(ValueError, match="read-only"):
        sprinkler.marginals()["rain"].probs[0] = 1.0
    with pytest.raises(ModelError, match=r"the shape \(2,\), not \(3,\)"):
        Distribution(answer.variables, np.zeros(3))


def test_how_answers_show_themselves(sprinkler: sf.BayesNet) -> None:
    assert repr(sprinkler.query("on", {"rain": "yes"})).splitlines() == [
        "p(on | rain=yes), exact",
        "on   probability",
        "───  ───────────",
        "no   1",
        "yes  0",
    ]
    x = sf.Finite("x", [str(i) for i in range(40)])
    ends = Interval(np.full(40, 0.01), np.full(40, 0.04))
    answer = Distribution((x,), np.full(40, 0.025), ends, np.full(40, 0.001), 99.0, "weighting, 100 samples", {"y": [1, 0.5]})
    lines = repr(answer).splitlines()
    assert lines[0] == "p(x | y~(1, 0.5)), weighting, 100 samples"
    assert lines[1].split() == ["x", "probability", "lower", "upper", "±"]
    assert lines[-1] == "… and 8 more rows"
    assert list(answer.to_frame().columns) == ["x", "probability", "lower", "upper", "error"]
    assert "<table>" in answer._repr_html_()


def test_how_marginals_and_most_probable_states_show_themselves(sprinkler: sf.BayesNet) -> None:
    answers = sprinkler.marginals({"rain": "yes"})
    assert repr(answers).splitlines()[0] == "Marginals of 3 nodes given rain=yes; ln p(evidence) = -1.609"
    assert "wet   no 0.2, yes 0.8" in repr(answers)
    assert repr(sprinkler.marginals()).splitlines()[0] == "Marginals of 3 nodes"
    assert "<table>" in answers._repr_html_()
    assert "rain" in answers
    assert answers.get("rian") is None
    with pytest.raises(ModelError, match="no node 'rian'; did you mean 'rain'"):
        answers["rian"]
    best = sprinkler.most_probable({"wet": {"no": 0.5, "yes": 1}})
    assert repr(best).splitlines()[0].startswith("Most probable states of 3 nodes given wet~(no: 0.5, yes: 1); probability 0.")
    assert "<table>" in best._repr_html_()
    assert best.get("nobody", 1) == 1
    with pytest.raises(ModelError, match="no node 'rian'; did you mean 'rain'"):
        best["rian"]
    states = sf.Finite("x", [str(i) for i in range(9)])
    many = sf.BayesNet(
        sf.Dag([], nodes=[f"n{i}" for i in range(50)]),
        {f"n{i}": np.full(9, 1 / 9) for i in range(50)},
        [sf.Finite(f"n{i}", states.states) for i in range(50)],
    )
    lines = repr(many.marginals()).splitlines()
    assert lines[-1] == "… and 10 more nodes"
    assert lines[-2].endswith("5 0.1111, … and 3 more")
    assert repr(MostProbable({f"n{i}": "0" for i in range(50)}, 0.0, 0.0)).endswith("… and 10 more nodes")


def test_a_node_of_many_states_shows_the_most_probable_first() -> None:
    x = sf.Finite("x", [f"s{i}" for i in range(200)])
    bn = sf.BayesNet("x", {"x": np.full(200, 1 / 200)}, [x])
    line = repr(bn.marginals({"x": "s150"})).splitlines()[-1]
    assert line.split(maxsplit=1) == ["x", "s150 1, s0 0, s1 0, s2 0, s3 0, s4 0, … and 194 more"]
    assert repr(bn.marginals()).splitlines()[0] == "Marginals of 1 node"
    assert repr(bn.most_probable()).splitlines()[0] == "Most probable states of 1 node; probability 0.005"


def test_no_column_of_numbers_takes_the_place_of_a_target() -> None:
    names = ("probability", "lower", "upper", "error", "probability_")
    variables = tuple(sf.Finite(n, ["a", "b"]) for n in names)
    probs = np.full((2,) * 5, 1 / 32)
    answer = Distribution(variables, probs, Interval(probs, probs), probs)
    frame = answer.to_frame()
    assert list(frame.columns) == [*names, "probability__", "lower_", "upper_", "error_"]
    assert frame["probability"].tolist() == ["a"] * 16 + ["b"] * 16
    assert frame["probability__"].sum() == pytest.approx(1)
    assert repr(answer).splitlines()[1].split() == [*names, "probability__", "lower_", "upper_", "±"]


def test_marginals_and_most_probable_states_as_frames(sprinkler: sf.BayesNet, hybrid: sf.BayesNet) -> None:
    answers = sprinkler.marginals({"rain": "yes"})
    frame = answers.to_frame()
    assert list(frame.columns) == ["node", "state", "probability"]
    assert frame[["node", "state"]].values.tolist() == [[n, s] for n in ("rain", "on", "wet") for s in ("no", "yes")]
    assert frame["probability"].tolist() == [p for n in answers for p in answers[n].probs]
    best = sprinkler.most_probable({"rain": "yes"}).to_frame()
    assert best.to_dict("list") == {"node": ["on", "wet"], "state": ["no", "yes"]}
    mixed = hybrid.marginals().to_frame()
    assert list(mixed.columns) == ["node", "state", "probability", "mean", "sd"]
    assert mixed["node"].tolist() == ["u", "u", "w", "w", "x"]
    assert mixed["mean"].isna().tolist() == [True] * 4 + [False]
    assert mixed.loc[4, "mean"] == pytest.approx(1.4)
    best = hybrid.most_probable().to_frame()
    assert best["state"].tolist()[:2] == ["b", "d"]
    assert best["state"].isna().tolist() == [False, False, True]
    assert best.loc[2, "value"] == pytest.approx(2.0)


def test_a_row_of_a_frame_is_evidence(sprinkler: sf.BayesNet, hybrid: sf.BayesNet) -> None:
    row = pd.DataFrame({"rain": ["yes"], "on": ["no"]}).iloc[0]
    answer = sprinkler.query("wet", row)
    assert answer["yes"] == sprinkler.query("wet", {"rain": "yes", "on": "no"})["yes"]
    assert answer.given == {"rain": "yes", "on": "no"}
    assert hybrid.log_prob_of(pd.Series({"x": 1.5})) == hybrid.log_prob_of({"x": 1.5})
    with pytest.raises(ModelError, match="'on' was given as nan; leave out"):
        sprinkler.query("wet", pd.DataFrame({"rain": ["yes"], "on": [np.nan]}).iloc[0])


def test_likelihoods_in_a_series_are_read_by_their_labels(sprinkler: sf.BayesNet) -> None:
    expected = sprinkler.query("wet", {"rain": {"no": 0.2, "yes": 0.8}})
    for value in (pd.Series([0.8, 0.2], index=["yes", "no"]), pd.Series([0.2, 0.8])):
        assert sprinkler.query("wet", {"rain": value})["yes"] == expected["yes"]
    assert "rain~(yes: 0.8, no: 0.2)" in repr(sprinkler.query("wet", {"rain": pd.Series([0.8, 0.2], index=["yes", "no"])}))
    with pytest.raises(ModelError, match="label twice"):
        sprinkler.query("wet", {"rain": pd.Series([0.8, 0.2], index=["no", "no"])})


def test_answers_pickle(sprinkler: sf.BayesNet) -> None:
    answer = pickle.loads(pickle.dumps(sprinkler.query(["on", "wet"], {"rain": "no"})))
    assert answer["yes", "yes"] == sprinkler.query(["on", "wet"], {"rain": "no"})["yes", "yes"]
    assert not answer.probs.flags.writeable
    assert repr(answer) == repr(sprinkler.query(["on", "wet"], {"rain": "no"}))
    all_of_them = pickle.loads(pickle.dumps(sprinkler.marginals({"wet": "yes"})))
    assert isinstance(all_of_them, Marginals)
    assert all_of_them["on"]["yes"] == sprinkler.marginals({"wet": "yes"})["on"]["yes"]
    best = pickle.loads(pickle.dumps(sprinkler.most_probable()))
    assert dict(best) == dict(sprinkler.most_probable())
    again = pickle.loads(pickle.dumps(sprinkler))
    assert again.query("wet")["yes"] == sprinkler.query("wet")["yes"]


def test_evidence_that_cannot_be(sprinkler: sf.BayesNet) -> None:
    never = {"rain": "yes", "on": "yes"}
    for ask in (
        lambda: sprinkler.query("wet", never),
        lambda: sprinkler.marginals(never),
        lambda: sprinkler.most_probable(never),
        lambda: sprinkler.most_probable({**never, "wet": "yes"}),
    ):
        with pytest.raises(ModelError, match=r"probability zero.*rain=yes, on=yes"):
            ask()
    with pytest.raises(ModelError, match=r"probability zero.*on~\(0, 1\)"):
        sprinkler.query("rain", {"rain": {"no": 0, "yes": 1}, "on": [0, 1]})
    assert sprinkler.log_prob_of(never) == -np.inf


def test_what_everything_or_nothing_is_given(sprinkler: sf.BayesNet) -> None:
    every = {"rain": "no", "on": "yes", "wet": "yes"}
    assert sprinkler.log_prob_of(every) == pytest.approx(np.log(0.8 * 0.4 * 0.9))
    assert sprinkler.log_prob_of({}) == 0.0
    assert sprinkler.log_prob_of(None) == 0.0
    best = sprinkler.most_probable(every)
    assert dict(best) == {}
    assert best.probability == 1.0
    assert best.log_prob == sprinkler.log_prob_of(every)
    assert sprinkler.marginals(every)["wet"]["yes"] == 1.0
    assert sprinkler.query("rain", {}).given == {}


def test_states_come_as_text_numbers_and_truths() -> None:
    flag, level = sf.Finite("flag", [False, True]), sf.Finite("level", [1, 2, 3])
    bn = sf.BayesNet("flag -> level", {"flag": [0.5, 0.5], "level": [[0.5, 0.5, 0], [0, 0.5, 0.5]]}, [flag, level])
    assert bn.query("flag", {"level": 3})[True] == 1.0
    assert bn.query("flag", {"level": 3.0})["true"] == 1.0
    assert bn.query("flag", {"level": np.int64(1)})["false"] == 1.0
    assert bn.query("level", {"flag": np.True_})[2] == 0.5
    with pytest.raises(ModelError, match="the likelihoods of 'flag' have its state 'true' twice"):
        bn.query("level", {"flag": {False: 1, True: 1, "true": 0}})


def test_a_number_for_a_binned_variable_falls_into_its_bin() -> None:
    age = sf.Finite("age", ["<18", "[18,65)", ">=65"], cuts=[18, 65])
    bn = sf.BayesNet("age", {"age": [0.2, 0.5, 0.3]}, [age])
    probability = {n: float(np.exp(bn.log_prob_of({"age": n}))) for n in (-3, 17.9, 18, np.float64(64), 65, "[18,65)")}
    assert list(probability.values()) == pytest.approx([0.2, 0.2, 0.5, 0.5, 0.3, 0.5])
    assert bn.query("age")[40] == 0.5
    with pytest.raises(ModelError, match="'age' was given as nan; leave out"):
        bn.log_prob_of({"age": float("nan")})
    for bad in (float("inf"), 10**400):
        with pytest.raises(ModelError, match="'age' is a number and needs a finite one"):
            bn.log_prob_of({"age": bad})
    with pytest.raises(SchemaError, match="'age' has no state 'true'"):
        bn.log_prob_of({"age": True})


def test_refused_evidence(sprinkler: sf.BayesNet) -> None:
    def refused(given: Any, match: str) -> None:
        with pytest.raises(sf.SufficeError, match=match):
            sprinkler.query("wet", given)

    refused("rain=yes", r"must be a mapping.*as in \{'rain': 'yes'\}; not of type str$")
    refused([("rain", "yes")], r"must be a mapping.*as in \{'x': 'yes'\}; not of type list$")
    refused("rain" * 99, r"as in \{'x': 'yes'\}; not of type str$")
    refused(pd.DataFrame({"rain": ["yes"]}), r"not of type DataFrame$")
    refused(pd.Series(["yes", "no"], index=["rain", "rain"]), "names a variable twice")
    refused({"rian": "yes"}, "no node 'rian'; did you mean 'rain'")
    refused({3: "yes"}, "no node 3")
    refused({"rain": "yess"}, "'rain' has no state 'yess'; did you mean 'yes'")
    refused({"rain": "heavy"}, "no state 'heavy'; its states are 'no', 'yes'")
    for nothing, words in NOTHING:
        refused({"rain": nothing}, f"'rain' was given as {words}; leave out what is not observed")
    refused({"rain": [0.5]}, r"one number for each of its 2 states 'no', 'yes'; got the shape \(1,\)")
    refused({"rain": [[0.5, 0.5]]}, r"got the shape \(1, 2\)")
    refused({"rain": ["a", "b"]}, "the likelihoods of 'rain' must be numbers")
    refused({"rain": [0.5, -0.5]}, r"from 0 up, not \[0.5, -0.5\]")
    refused({"rain": [0.5, np.nan]}, "must be finite numbers from 0 up")
    refused({"rain": [0.5, np.inf]}, "must be finite numbers from 0 up")
    refused({"rain": np.zeros(2)}, "are all zero")
    refused({"rain": {"yes": 0.5}}, "lack its state 'no'; list every state")
    refused({"rain": {"yes": 0.5, "nno": 0.5}}, "'rain' has no state 'nno'; did you mean 'no'")
    refused({"rain": {}}, "lack its state 'no'")


def test_refused_targets(sprinkler: sf.BayesNet) -> None:
    def refused(targets: Any, match: str, given: Any = None) -> None:
        with pytest.raises(ModelError, match=match):
            sprinkler.query(targets, given)
        if targets is not None:
            with pytest.raises(ModelError, match=match):
                sprinkler.most_probable(given, targets)

    refused([], "no target")
    refused("wett", "no node 'wett'; did you mean 'wet'")
    refused([3], "no node 3")
    refused(3, "a name or a list of names")
    refused(None, "a name or a list of names")
    refused({"wet", "on"}, "a name or a list of names, whose order")
    refused(["wet", "wet"], "'wet' is named twice")
    refused(["wet", "on"], "'wet' is asked for and given at once", {"wet": "yes"})
    with pytest.raises(ModelError, match="interval or method, not both"):
        sprinkler.query("wet", method=object(), interval=0.9)  # type: ignore[arg-type]


def test_a_joint_too_large_is_refused_before_it_is_made() -> None:
    names = [f"n{i}" for i in range(40)]
    bn = sf.BayesNet(sf.Dag([], nodes=names), {n: [0.5, 0.5] for n in names}, [sf.Finite(n, ["a", "b"]) for n in names])
    with pytest.raises(TooLarge, match=r"40 variables .*1,099,511,627,776 cells .*fewer.*most_probable"):
        bn.query(names)


@pytest.fixture
def hybrid() -> sf.BayesNet:
    u = sf.Finite("u", ["a", "b"])
    tables = {"u": [0.3, 0.7], "w": [[0.5, 0.5], [0.1, 0.9]], "x": sf.Gaussian([0.0, 2.0])}
    return sf.BayesNet("u -> x; u -> w", tables, [u, sf.Finite("w", ["c", "d"])])


def test_a_finite_question_does_not_touch_the_real_part(hybrid: sf.BayesNet) -> None:
    assert hybrid.query("u", {"w": "c"})["a"] == pytest.approx(0.15 / 0.22)
    assert hybrid.log_prob_of({"w": "c"}) == pytest.approx(np.log(0.22))
    assert dict(hybrid.most_probable({"w": "c"}, targets="u")) == {"u": "a"}
    assert "gaussians" not in vars(hybrid.compiled)


def test_evidence_on_real_variables(hybrid: sf.BayesNet) -> None:
    seen = evidence_codes(hybrid, {"x": 1, "u": [1, 2], "w": "d"})
    assert seen.reals == {0: 1.0}
    assert seen.codes.tolist() == [-1, 1]
    assert list(seen.soft) == [0]
    assert repr(seen) == "x=1, u~(1, 2), w=d"
    for bad in ("1", True, np.inf, 10**400, [1.0], {"a": 1}):
        with pytest.raises(ModelError, match="'x' is a number and needs a finite one"):
            hybrid.query("u", {"x": bad})
    for nothing, words in NOTHING:
        with pytest.raises(ModelError, match=f"'x' was given as {words}; leave out what is not observed"):
            hybrid.query("u", {"x": nothing})


def test_treewidth(sprinkler: sf.BayesNet) -> None:
    assert sprinkler.treewidth == 2
    assert sf.BayesNet("x", {"x": sf.Gaussian()}).treewidth == 0


def test_real_evidence_reaches_every_question(hybrid: sf.BayesNet) -> None:
    density = {"a": np.exp(-0.5 * 1.5**2), "b": np.exp(-0.5 * 0.5**2)}
    joint = {s: p * density[s] / np.sqrt(2 * np.pi) for s, p in {"a": 0.3, "b": 0.7}.items()}
    total = sum(joint.values())
    assert hybrid.log_prob_of({"x": 1.5}) == pytest.approx(np.log(total))
    assert hybrid.query("u", {"x": 1.5})["a"] == pytest.approx(joint["a"] / total)
    assert hybrid.marginals({"x": 1.5})["u"]["a"] == pytest.approx(joint["a"] / total)
    assert hybrid.most_probable({"x": 1.5}, targets="u")["u"] == "b"


def test_labels_of_likelihoods_are_not_merged() -> None:
    import pandas as pd

    bn = sf.BayesNet("x", {"x": [0.2, 0.8]}, {"x": ["a", "b"]})
    with pytest.raises(ModelError, match="label twice"):
        bn.query("x", {"x": pd.Series([9.0, 1.0, 3.0], index=["a", "a", "b"])})


def test_intervals_of_all_marginals_are_those_of_single_questions() -> None:
    asia = sf.load("asia")
    bn = sf.fit(asia.dag, asia.sample(60, seed=3), prior=sf.BDeu(0.01))  # tiny pseudo-counts: draws that underflow
    for given in ({}, {"xray": "yes", "smoke": "no"}, {"dysp": {"yes": 0.3, "no": 0.9}}):
        every = bn.marginals(given, interval=0.9, seed=5)
        for name in bn.variables:
            if name in given and isinstance(given[name], str):
                continue
            one = bn.query(name, given, interval=0.9, seed=5)
            assert np.allclose(every[name].interval, one.interval, atol=1e-12)
            assert np.allclose(every[name].probs, one.probs, atol=1e-14)
            assert every[name].how == one.how


@pytest.mark.parametrize("ess", [1e-2, 1e-6])
def test_draws_that_rule_the_evidence_out_concern_only_what_depends_on_it(ess: float) -> None:
    variables = {"x": sf.Finite("x", ["a", "b"]), "y": sf.Finite("y", ["u", "v"]), "z": sf.Finite("z", ["p", "q"])}
    rows = sf.scan({"x": ["a"] * 50, "y": ["u"] * 50, "z": ["p", "q"] * 25}, variables)
    bn = sf.fit("x -> y; z", rows, prior=sf.BDeu(ess))  # y=v was never seen: some draws, or all, give it no probability
    try:
        alone = bn.query("x", {"y": "v"}, interval=0.9)
    except ModelError:
        alone = None
    if alone is None:
        with pytest.warns(sf.SufficeNote, match="'x' told without an interval"):
            every = bn.marginals({"y": "v"}, interval=0.9)
        assert every["x"].interval is None
    else:
        every = bn.marginals({"y": "v"}, interval=0.9)
        assert np.allclose(every["x"].interval, alone.interval)
    assert np.allclose(every["z"].interval, bn.query("z", {"y": "v"}, interval=0.9).interval)


def test_draws_of_all_marginals_that_would_not_fit_are_taken_node_by_node(monkeypatch: pytest.MonkeyPatch) -> None:
    bn = sf.fit("x -> y", {"x": ["a", "b"] * 9, "y": ["a", "a", "b"] * 6}, prior=sf.Dirichlet(1))
    whole = bn.marginals(interval=0.9)
    monkeypatch.setattr("suffice.models.questions.intervals.MAX_NUMBERS", 2500)
    assert np.allclose(bn.marginals(interval=0.9)["y"].interval, whole["y"].interval)


ALL_NODES = "suffice.models.questions.marginal_intervals"


@pytest.fixture(scope="module")
def fitted_asia() -> sf.BayesNet:
    asia = sf.load("asia")
    return sf.fit(asia.dag, asia.sample(500, seed=1), prior=sf.BDeu(1))


def test_intervals_of_all_nodes_are_the_same_at_once_and_one_by_one(
    fitted_asia: sf.BayesNet, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = fitted_asia.marginals({"smoke": "yes"}, interval=0.9)
    monkeypatch.setattr(f"{ALL_NODES}.UP_AND_DOWN", 1e9)
    one_by_one = fitted_asia.marginals({"smoke": "yes"}, interval=0.9)
    some = fitted_asia.marginals({"smoke": "yes"}, interval=0.9, targets=["xray", "lung"])
    assert list(some) == ["xray", "lung"]
    for name in at_once:
        assert np.allclose(at_once[name].interval, one_by_one[name].interval, atol=1e-12)
    assert np.allclose(some["xray"].interval, at_once["xray"].interval, atol=1e-12)


def test_intervals_that_a_time_limit_leaves_no_time_for_are_named(
    fitted_asia: sf.BayesNet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{ALL_NODES}.SECONDS", 1.0)  # nothing is that slow: what is expected decides, not the clock
    with pytest.warns(sf.SufficeNote, match="told without an interval, as the time_limit of 60 s is too short: .* h or more;"):
        found = fitted_asia.marginals({"smoke": "yes"}, interval=0.9, time_limit=60)
    assert {n for n in found if found[n].interval is not None} == {"smoke"}  # which is known
    assert found["lung"].probs == pytest.approx(fitted_asia.query("lung", {"smoke": "yes"}).probs)


@pytest.mark.parametrize(
    ("seconds", "limit", "said"), [(2e-3, 60, r"about \d+ min"), (1e-4, 4, r"about \d+ s"), (5e-7, 0.02, "less than a second")]
)
def test_the_time_that_intervals_should_take_is_said(
    fitted_asia: sf.BayesNet, monkeypatch: pytest.MonkeyPatch, seconds: float, limit: float, said: str
) -> None:
    monkeypatch.setattr(f"{ALL_NODES}.SECONDS", seconds)
    with pytest.warns(sf.SufficeNote, match=f"is too short: this should take {said} or more;"):
        fitted_asia.marginals({"smoke": "yes"}, interval=0.9, time_limit=limit)


def test_the_clock_is_looked_at_between_draws(fitted_asia: sf.BayesNet, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr("suffice.basis.iteration.Progress.seconds", property(lambda _: float(next(ticks))))
    monkeypatch.setattr("suffice.models.questions.intervals.CELLS", 1)  # a draw at a time
    with pytest.warns(sf.SufficeNote, match="told without an interval"):
        found = fitted_asia.marginals(interval=0.9, time_limit=300)  # ticks, of which a thousand draws take a thousand
    assert all(found[name].interval is None for name in found)
    assert next(ticks) < 400


def test_an_unknown_target_of_marginals_is_refused(fitted_asia: sf.BayesNet) -> None:
    with pytest.raises(ModelError, match="lung"):
        fitted_asia.marginals(targets=["lnug"])
