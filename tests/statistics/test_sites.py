"""Statistics of several sites: files that add, small cells that are left out, and what is said where files do not fit."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.errors import FitError, FormatError, StatisticsError, SufficeError
from suffice.statistics.merge import merge_files
from suffice.statistics.suppression import Lost

SIZES = (700, 1300)


@pytest.fixture
def sites(run):
    """The rows of two hospitals, and of both, as Parquet files."""
    truth = sf.load("asia")
    for name, n in zip("ab", SIZES, strict=True):
        pq.write_table(truth.sample(n, seed=n), f"{name}.parquet")
    return run


def ok(answer: tuple[int, str, str]) -> tuple[str, str]:
    code, out, err = answer
    assert code == 0, err
    return out, err


def merged(sites: Any, *options: Any) -> sf.Statistics:
    for name in "ab":
        ok(sites("gather", f"{name}.parquet", *options, "-o", f"{name}.stats"))
    ok(sites("merge", "a.stats", "b.stats", "-o", "all.stats"))
    return sf.Statistics.load("all.stats")


def test_pairs_of_two_sites_are_those_of_all_rows(sites) -> None:
    total = merged(sites, "--pairs")
    both = sf.gather(["a.parquet", "b.parquet"], max_parents=1)
    assert total == both
    of_files = json.loads(ok(sites("learn", "all.stats", "--method", "chow-liu", "--json"))[0])
    of_rows = json.loads(ok(sites("learn", "[ab].parquet", "--method", "chow-liu", "--json"))[0])
    assert (of_files["edges"], of_files["score"]) == (of_rows["edges"], of_rows["score"])


def test_a_model_gives_its_states_and_its_graph_goes_with_pairs(sites) -> None:
    """`fit`, `score` and `learn` of one file; the states are those of the network, seen or not."""
    total = merged(sites, "asia", "--pairs")
    truth = sf.load("asia")
    assert total.variables == {n: truth.variables[n] for n in total.variables}
    ok(sites("fit", "asia", "all.stats", "-o", "net.json"))
    assert sf.read("net.json") == sf.fit(truth, ["a.parquet", "b.parquet"])
    scores = json.loads(ok(sites("score", "asia", "all.stats", "--json"))[0])
    assert scores["graph: BIC"] == sf.score(truth.dag, truth.rows(["a.parquet", "b.parquet"]), sf.BIC())
    assert json.loads(ok(sites("learn", "all.stats", "--method", "chow-liu", "--json"))[0])["edges"]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("uvw"), st.sampled_from("pq"), st.integers(-3, 3)), min_size=4, max_size=60),
    st.data(),
)
def test_law_files_of_parts_add_to_that_of_all(tmp_path_factory, rows: list[Any], data: Any) -> None:
    """gather(a) + gather(b) through files = gather of both, whichever states a part has met."""
    cut = data.draw(st.integers(1, len(rows) - 1))
    folder = tmp_path_factory.mktemp("parts")
    declared = {"x": sf.Finite, "y": sf.Finite, "z": sf.Real("z")}
    columns = [{n: [row[i] for row in part] for i, n in enumerate("xyz")} for part in (rows[:cut], rows[cut:], rows)]
    tables = [sf.gather(sf.scan(c, declared), "x -> y; x -> z") for c in columns]
    for i, table in enumerate(tables[:2]):
        table.save(folder / f"{i}.stats")
    total = merge_files([folder / "0.stats", folder / "1.stats"])
    assert total == sf.Statistics.load(folder / "0.stats") + sf.Statistics.load(folder / "1.stats")
    assert total.counts(["x", "y"]) == tables[2].counts(["x", "y"])
    both, all_rows = total.moments(["x"], ["z"]), tables[2].moments(["x"], ["z"])
    np.testing.assert_allclose(both.mean, all_rows.mean, atol=1e-12)
    np.testing.assert_allclose(both.scatter, all_rows.scatter, atol=1e-10)


@pytest.mark.parametrize("decay", [1.0, 0.5])
@pytest.mark.parametrize("least", [None, 10])
def test_files_add_as_values_do(tmp_path, decay: float, least: int | None) -> None:
    """Flat sums of files of one layout, others by name: the same as by hand."""
    truth, parts = sf.load("asia"), []
    for i in range(6):
        rows = truth.sample(60 if i == 3 else 400, seed=i)
        part = sf.gather(rows if i == 3 else truth.rows(rows), truth.dag)  # the fourth may have met fewer states
        parts.append(part if least is None else part.suppress(least))
        parts[-1].save(tmp_path / f"{i}.stats")
    total = parts[0]
    for part in parts[1:]:
        total = total.decay(decay) + part
    assert merge_files([tmp_path / f"{i}.stats" for i in range(6)], decay) == total


X, Y = sf.Finite("x", ["a", "b"]), sf.Finite("y", ["u", "v", "w"])


def suppressed(values: Any = ((30, 3, 0), (9, 10, 200)), least: int = 10) -> sf.Statistics:
    return sf.Statistics([sf.statistics.Counts((X, Y), values)], np.sum(values)).suppress(least)


def test_small_cells_are_set_to_nothing_and_counted() -> None:
    s = suppressed()
    assert s.counts(["x", "y"]).values.tolist() == [[30, 0, 0], [0, 10, 200]]
    assert s.suppression is not None
    assert s.suppression.of(next(iter(s))) == Lost(2, 2, 2.0, 18.0)
    assert "at most 18 rows" in repr(s)
    assert s.weight == 252


def test_moments_of_few_rows_are_left_out() -> None:
    rows = {"g": ["a"] * 5 + ["b"] * 20, "z": list(range(25))}
    s = sf.gather(sf.scan(rows, {"z": sf.Real("z")}), "g -> z").suppress(10)
    assert s.moments(["g"], ["z"]).keys.tolist() == [1]
    assert s.moments(["g"], ["z"]).mean.tolist() == [[14.5]]
    assert s.counts(["g"]).values.tolist() == [0, 20]


def test_weights_that_are_not_whole_have_wider_bounds() -> None:
    s = sf.Statistics([sf.statistics.Counts((X,), [0.5, 20])], 20.5).suppress(10)
    assert s.suppression is not None
    assert s.suppression.of(next(iter(s))) == Lost(1, 1, 0.0, 10.0)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(0, 15), min_size=6, max_size=6), min_size=1, max_size=5), st.integers(2, 12))
def test_law_what_is_lost_lies_within_the_bounds(tables: list[list[int]], least: int) -> None:
    whole = [sf.Statistics([sf.statistics.Counts((X, Y), np.reshape(t, (2, 3)))], sum(t)) for t in tables]
    total, seen = sum(whole), sum(s.suppress(least) for s in whole)
    assert isinstance(total, sf.Statistics)
    assert isinstance(seen, sf.Statistics)
    assert seen.suppression is not None
    a, b = total.counts(["x", "y"]).values, seen.counts(["x", "y"]).values
    lost = seen.suppression.of(next(iter(seen)))
    assert lost.least_cells <= (a != b).sum() <= lost.most_cells <= 6
    assert lost.least_weight <= a.sum() - b.sum() <= lost.most_weight
    smaller = seen.marginal(["y"])
    assert smaller.suppression is not None
    part = smaller.suppression.of(next(iter(smaller)))
    assert part.least_cells <= (a.sum(0) != b.sum(0)).sum() <= part.most_cells <= 3


def test_files_and_models_carry_the_threshold(tmp_path) -> None:
    s = suppressed()
    s.save(tmp_path / "a.stats")
    assert sf.Statistics.load(tmp_path / "a.stats") == s
    header = json.loads(zipfile.ZipFile(tmp_path / "a.stats").read("header.json"))
    assert (header["min_count"], header["lost"]) == (10, [[2, 2, 2.0, 18.0]])
    with pytest.warns(sf.SufficeNote, match="less than 10 rows were left out"):
        bn = sf.fit("x -> y", s)
    assert "less than 10 rows were left out" in bn.fit_info
    sf.write(bn, tmp_path / "net.json")
    assert sf.read(tmp_path / "net.json").statistics == s
    assert s.decay(0.5).suppression.of(next(iter(s))).most_weight == 9.0


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (lambda s: sf.score("x -> y", s, sf.Evidence(sf.BDeu(1))), "the evidence needs all cells"),
        (lambda s: sf.search(s, sf.Evidence(sf.BDeu(1)), sf.HillClimb()), "the evidence needs all cells"),
        (lambda s: sf.priors.by_evidence("x -> y", s, sf.BDeu()), "chosen by its evidence needs all cells"),
        (lambda s: sf.fit("x -> y", s, prior=sf.priors.EmpiricalBayes(sf.BDeu())), "chosen by its evidence needs all cells"),
        (lambda s: sf.fit("x -> y", s).log_likelihood(), "the log-likelihood of rows needs all cells"),
        (lambda s: sf.fit("x -- y", s), "an undirected model needs all cells"),
        (
            lambda s: sf.search(s, method=sf.Decomposable()),
            "Decomposable, which .* needs all cells",
        ),
        (lambda s: s - s, "taking statistics away needs all cells"),
        (lambda s: s + suppressed(least=5), "left out cells of less than 10 rows, and the second left out cells of less than 5"),
        (lambda s: s + sf.Statistics(list(s), s.weight), "and the second left out no cells"),
        (lambda s: s.suppress(10), "left out before"),
        (lambda s: sf.Statistics(list(s), 1).suppress(1), "min_count"),
    ],
)
@pytest.mark.filterwarnings("ignore::suffice.errors.SufficeNote")
def test_what_needs_all_cells_says_so(ask: Any, what: str) -> None:
    with pytest.raises(SufficeError, match=what):
        ask(suppressed())


def test_rows_that_only_a_larger_table_lost_are_no_reason_for_an_edge() -> None:
    """Independent columns with a rare state: the pair's table loses it, each column alone does not."""
    rng = np.random.default_rng(0)
    rows = {"x": rng.choice(list("abcd"), 4000), "y": np.where(rng.random(4000) < 0.006, "rare", rng.choice(["u", "v"], 4000))}
    s = sf.gather(rows, max_parents=1)
    assert s.counts(["y"]).values.min() > 10
    hidden = s.suppress(10)
    with pytest.warns(sf.SufficeNote, match="where cells are left"):
        assert sf.search(hidden, method=sf.methods.ChowLiu()).dag.edges == ()
    with pytest.warns(sf.SufficeNote, match="where cells are left"):
        gain = sf.score("x -> y", hidden, sf.LogLikelihood()) - sf.score("x; y", hidden, sf.LogLikelihood())
    pair = hidden.counts(["x", "y"]).values
    p = pair / pair.sum()
    outer = p.sum(1, keepdims=True) * p.sum(0)
    information = float((p[p > 0] * np.log((p / np.where(outer > 0, outer, 1))[p > 0])).sum())
    assert gain == pytest.approx(pair.sum() * information, rel=1e-9)


def test_nothing_lost_scores_as_before() -> None:
    s = sf.gather({"x": list("ab") * 40, "y": list("uuvv") * 20}, max_parents=1)
    with pytest.warns(sf.SufficeNote, match="no table lost any"):
        assert sf.score("x -> y", s.suppress(2), sf.BIC()) == pytest.approx(sf.score("x -> y", s, sf.BIC()), rel=1e-12)


def test_the_command_line_leaves_out_merges_and_tells(sites) -> None:
    for name in "ab":
        _, err = ok(sites("gather", f"{name}.parquet", "asia", "--pairs", "--min-count", 10, "-o", f"{name}.stats"))
        assert "cells of less than 10 rows were left out" in err
    _, err = ok(sites("merge", "a.stats", "b.stats", "-o", "all.stats"))
    assert "cells of less than 10 rows were left out" in err
    _, err = ok(sites("fit", "asia", "all.stats", "-o", "net.json"))
    assert "note: cells of less than 10 rows" in err
    facts = json.loads(ok(sites("score", "asia", "all.stats", "--json"))[0])
    assert "need all cells" in facts["small cells"]
    assert "graph: BIC" in facts
    assert ok(sites("learn", "all.stats", "--method", "chow-liu"))
    code, _, err = sites("learn", "all.stats", "--score", "bdeu:1")
    assert (code, "the evidence needs all cells" in err) == (1, True)


def saved(path: str, *entries: Any, weight: float | None = None) -> None:
    sf.Statistics(entries, entries[0].total if weight is None else weight).save(path)


def many(n: int = 20) -> list[str]:
    """Files of one table, of which something is wrong with the last but one."""
    for i in range(n):
        saved(f"{i}.stats", sf.statistics.Counts((X, Y), [[i, 1, 2], [3, 4, 5]]))
    return [f"{i}.stats" for i in range(n)]


def _cut(_: str) -> None:
    Path("18.stats").write_bytes(Path("18.stats").read_bytes()[:-40])


def _turn(_: str) -> None:
    with zipfile.ZipFile("18.stats") as archive:
        at = archive.getinfo("numbers.npy").header_offset + 60
    body = bytearray(Path("18.stats").read_bytes())
    body[at] ^= 255
    Path("18.stats").write_bytes(body)


WIDER = sf.Finite("y", ["u", "v", "z"])
DAMAGE: dict[str, tuple[Any, str]] = {
    "cut short": (_cut, "damaged"),
    "a byte turned": (_turn, "damaged"),
    "text": (lambda p: Path(p).write_text("x,y\n"), "damaged"),
    "nothing": (lambda p: Path(p).write_text(""), "damaged"),
    "gone": (lambda p: Path(p).unlink(), "there is no such file"),
    "impossible": (lambda p: saved(p, sf.statistics.Counts((X, Y), [[-1, 1, 2], [3, 4, 5]])), "negative"),
    "of other rows": (
        lambda p: saved(p, sf.statistics.Counts((X, Y), np.ones((2, 3))), weight=99),
        "of 6 rows, and the whole of 99",
    ),
    "other states": (
        lambda p: saved(p, sf.statistics.Counts((X, WIDER), np.ones((2, 3)))),
        "states of variable 'y' differ: only .* has 'w'",
    ),
    "another kind": (
        lambda p: saved(p, sf.statistics.Moments((), ("x",), [0], [2.0], [[1.0]], [[[2.0]]])),
        r"variable 'x' is Finite\('x', \['a', 'b'\]\) in the sum of the files before it and Real\('x'\) in 18.stats",
    ),
    "another table": (
        lambda p: saved(p, sf.statistics.Counts((X, Y), np.ones((2, 3))), sf.statistics.Counts((X,), [3, 3])),
        "18.stats has the table of 'x', and the sum of the files before it does not",
    ),
    "another threshold": (
        lambda p: suppressed().save(p),
        "before it left out no cells, and 18.stats left out cells of less than 10 rows",
    ),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_one_bad_file_of_many_is_named(run, what: str) -> None:
    files = many()
    spoil, said = DAMAGE[what]
    spoil("18.stats")
    with pytest.raises(SufficeError, match=rf"^18\.stats.*{said}"):
        merge_files(files)
    code, _, err = run("merge", *files, "-o", "all.stats")
    assert (code, err.startswith("error: 18.stats")) == (1, True)
    assert "Traceback" not in err
    assert not Path("all.stats").exists()


def test_the_file_before_which_a_sum_is_beyond_the_largest_double_is_named(tmp_path) -> None:
    for name, states, values in (("a", "uv", [1e308, 1.0]), ("b", "uvw", [1.0, 1.0, 1.0])):
        table = sf.statistics.Counts((sf.Finite("x", list(states), inferred=True),), values)
        sf.Statistics([table], sum(values)).save(tmp_path / f"{name}.stats")
    with pytest.raises(SufficeError, match=r"b\.stats does not add to the files before it: the weight of the rows is inf"):
        merge_files([tmp_path / "a.stats", tmp_path / "a.stats", tmp_path / "b.stats"])


def test_other_cuts_and_kinds_are_named(run) -> None:
    cells = {"x": np.arange(60.0).tolist(), "y": list("uv") * 30}
    for name, x in {"a": sf.Bins(2), "b": sf.Bins(3), "c": sf.Real("x"), "d": sf.Finite}.items():
        sf.gather(sf.scan(cells if name != "d" else {**cells, "x": list("pq") * 30}, {"x": x}), "x; y").save(f"{name}.stats")
    for name, said in {
        "b": "'x' is cut at [30.0] in the sum",
        "c": "and Real('x') in c.stats",
        "d": "and not cut in d.stats",
    }.items():
        code, _, err = run("merge", "a.stats", f"{name}.stats", "-o", "all.stats")
        assert code == 1
        assert err.startswith(f"error: {name}.stats does not add to the files before it")
        assert said in err, err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("merge 0.stats 1.stats -o no/all.stats", "there is no directory 'no'"),
        ("merge 0.stats 1.stats -o 1.stats", "1.stats is one of the files to add"),
        ("merge 0.stats ./0.stats -o all.stats", "./0.stats is given twice, as 0.stats"),
        ("merge 0.stats 1.stats --decay 2 -o all.stats", "decay is the share"),
        ("gather rows.csv x -o no/all.stats", "there is no directory 'no'"),
        ("gather rows.csv --pairs --max-parents 2 -o all.stats", "--pairs is --max-parents 1"),
        ("gather rows.csv x --min-count 1 -o all.stats", "--min-count"),
        ("gather rows.csv x --pairs --dry-run", "without a graph"),
        ("fit x->z 0.stats -o net.json", "do not speak of 'z'"),
        ("fit x->y single.stats -o net.json", "do not say how 'x', 'y' go together"),
    ],
)
def test_refusals(run, arguments: str, said: str) -> None:
    many(2)
    Path("rows.csv").write_text("x,y\n" + "a,u\nb,v\n" * 20)
    saved("single.stats", sf.statistics.Counts((X,), [3, 3]), sf.statistics.Counts((Y,), [2, 2, 2]))
    code, _, err = run(*arguments.split())
    assert code != 0
    assert said in err
    assert not Path("all.stats").exists()


def test_the_first_version_of_files_is_read() -> None:
    """Each array is a member of the archive there; the flat form of the same statistics is the same."""
    for path in sorted((Path(__file__).parents[1] / "reference").glob("*.stats")):
        s = sf.Statistics.load(path)
        assert merge_files([path, path]).weight == 2 * s.weight


def test_lost_weight_beyond_its_bounds_is_refused(tmp_path) -> None:
    s = suppressed()
    s.save(tmp_path / "a.stats")
    with zipfile.ZipFile(tmp_path / "a.stats") as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    for old, new, said in [
        (b"[[2, 2, 2.0, 18.0]]", b"[[2, 2, 2.0, 3.0]]", "rows, and the whole"),
        (b"[[2, 2, 2.0, 18.0]]", b"[[2, 1, 2.0, 18.0]]", "bounds"),
        (b"[[2, 2, 2.0, 18.0]]", b"[]", "damaged"),
        (b'"min_count": 10', b'"min_count": "a"', "min_count"),
    ]:
        assert old in members["header.json"]
        with zipfile.ZipFile(tmp_path / "b.stats", "w") as archive:
            for name, body in members.items():
                archive.writestr(name, body.replace(old, new) if name == "header.json" else body)
        for read in (sf.Statistics.load, lambda p: merge_files([tmp_path / "a.stats", p])):
            with pytest.raises(FormatError, match=f"b.stats.*{said}"):
                read(tmp_path / "b.stats")


def test_max_parents_goes_with_directed_graphs() -> None:
    with pytest.raises(FitError, match="directed graph"):
        sf.gather(sf.sequences({"x": list("abab")}), "x[-1] -> x", max_parents=1)
    with pytest.raises(StatisticsError, match="do not say how"):
        sf.gather({"x": list("ab"), "y": list("uv"), "z": list("pq")}, "x; y; z", max_parents=1).counts(["x", "y", "z"])
