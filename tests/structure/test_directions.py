"""Why an edge leads this way: compelled, either way, fixed by constraints, fixed by the kind of model. And `MaxParents`."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import SufficeNote

rng = np.random.default_rng(0)
SBP = rng.normal(size=1_000)
MIXED = {"sbp": SBP, "ill": np.where(rng.random(1_000) < 1 / (1 + np.exp(-2 * SBP)), "yes", "no")}


def asia() -> Any:
    return sf.load("asia").sample(3_000, seed=0)


def noted(call: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SufficeNote)
        call()
    return [str(w.message) for w in caught]


@pytest.mark.parametrize("method", [sf.Orders(), sf.HillClimb(), sf.Exact(), sf.methods.GES()])
def test_an_edge_from_a_number_to_a_state_is_fixed_by_the_kind_of_model(method: Any) -> None:
    found = sf.search(MIXED, method=method)
    assert found.directions == {("ill", "sbp"): "fixed by the kind of model"}
    assert "fixed by the kind of model" in repr(found)
    why = repr(found.explain("ill -> sbp"))
    assert "fixed by the kind of model: a state cannot have a number for a parent" in why
    assert "compelled" not in why + repr(found)
    assert "variables={'sbp': Bins(5)}" in why
    assert pickle.loads(pickle.dumps(found)).directions == found.directions


def test_a_note_says_so_before_the_search_and_its_way_out_works() -> None:
    said = noted(lambda: sf.search(MIXED))
    assert sum("can only lead from the state to the number" in s and "variables={'sbp': Bins(5)}" in s for s in said) == 1
    cut = sf.scan(MIXED, variables={"sbp": sf.Bins(5)})
    assert noted(lambda: sf.search(cut)) == []
    assert set(sf.search(cut).directions.values()) == {"either way"}
    assert noted(lambda: sf.search({"x": SBP, "y": SBP + rng.normal(size=1_000)})) == []


def test_even_an_arrow_of_a_collider_is_not_called_compelled() -> None:
    u = rng.normal(size=2_000)
    f = rng.choice(["a", "b"], 2_000)
    found = sf.search({"f": f, "u": u, "z": 2.0 * (f == "a") + u + rng.normal(size=2_000)})
    assert found.directions == {("f", "z"): "fixed by the kind of model", ("u", "z"): "compelled"}


def test_the_four_words() -> None:
    rows = asia()
    free = sf.search(rows)
    assert free.directions[("bronc", "smoke")] == "either way"
    assert free.directions[("tub", "either")] == "compelled"
    assert "either way: the data cannot tell the direction" in repr(free.explain(("smoke", "bronc")))
    tiers = sf.Tiers(["smoke"], ["asia", "bronc", "dysp", "either", "lung", "tub", "xray"])
    told = sf.search(rows, constraints=tiers)
    assert told.directions[("smoke", "bronc")] == told.directions[("smoke", "lung")] == "fixed by constraints"
    assert told.directions[("tub", "either")] == "compelled"
    assert "fixed by constraints: without them" in repr(told.explain("smoke -> bronc"))
    required = sf.search(rows, constraints=sf.Require(("smoke", "bronc")))
    assert required.directions[("smoke", "bronc")] == "fixed by constraints"
    assert set(map(tuple, free.to_dict()["directions"])) == {(*e, why) for e, why in free.directions.items()}
    words = {"compelled", "either way", "fixed by constraints", "fixed by the kind of model"}
    assert {why for found in (free, told, required) for why in found.directions.values()} <= words


def test_a_maximum_of_parents_is_what_the_user_says() -> None:
    names = [f"x{i}" for i in range(5)]
    rows = {n: rng.choice(["0", "1"], 4_000) for n in names}
    rows["y"] = np.array(["e", "o"])[sum((rows[n] == "1").astype(int) for n in names) % 2]  # the parity of five
    for method in (sf.Orders(), sf.Exact()):
        found = sf.search(rows, method=method, constraints=sf.constraints.MaxParents(5))
        assert max(len(found.dag.parents(n)) for n in found.dag.nodes) == 5, method
    assert sf.search(rows, constraints=sf.constraints.MaxParents(5)).method.max_parents == 5
    assert not sf.search(rows).dag.edges  # three parents know nothing of a parity
    one = sf.search(rows, constraints=sf.constraints.MaxParents(None, {"y": 5}))
    assert len(one.dag.parents("y")) == 5
    assert not sf.search(rows, method=sf.Orders(max_parents=4), constraints=sf.constraints.MaxParents(5)).dag.edges
    assert "Orders(max_parents=5)" in str(sf.search(rows, constraints=sf.constraints.MaxParents(5), dry_run=True))
