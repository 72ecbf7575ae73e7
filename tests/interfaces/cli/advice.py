"""Lines of Python that are refused or noted with a way out, each with the lines below it that take it.

A name such as `rows` is one of `tables()`; all other names are those of Suffice, `sf.exponential` is `ef`.
"""

from __future__ import annotations

import tempfile
import warnings
from typing import Any

import numpy as np

import suffice as sf


def restored(table: dict[str, Any]) -> sf.BayesNet:
    """What EM learned, from a file, which does not hold the information of the rows."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sf.write(sf.fit("ill -> smoke", table), f"{folder}/m.json")
        found = sf.read(f"{folder}/m.json")
    assert isinstance(found, sf.BayesNet)
    return found


def pairs_of(n: int) -> list[str]:
    return ["a", "b"] * (n // 2)


def tables() -> dict[str, Any]:
    """Small tables of every kind."""
    rng = np.random.default_rng(5)
    n = 120
    x = rng.normal(size=n)
    ill, smoke = np.where(x + rng.normal(size=n) > 0, "yes", "no"), np.where(rng.random(n) < 0.5, "yes", "no")
    rows = {
        "x": list(x),
        "z": list(x + rng.normal(size=n)),
        "wait": list(rng.gamma(2.0, 1.0, n)),
        "k": [int(v) for v in rng.poisson(9.0, n)],
        "ill": list(ill),
        "smoke": list(smoke),
        "c": [str(v) for v in rng.choice(["a", "b", "c"], n)],
    }
    counted = sf.scan(rows, variables={"k": sf.Count("k")})
    steps = {"id": [i // 10 for i in range(n)], "t": [i % 10 for i in range(n)], **rows}
    gaps = {name: [None if i % 11 == j else v for i, v in enumerate(column)] for j, (name, column) in enumerate(rows.items())}
    pairs = {name: [str(v) for v in rng.choice(["u", "v"], n)] for name in "abcd"}
    twins = {"x": rows["x"], "y1": rows["ill"], "y2": rows["smoke"]}
    regression = sf.fit("x -> ill", rows, families={"ill": sf.Logistic()})
    tossed = sf.scan({"n": [9] * 30, "k": [3, 4, 5] * 10}, variables={"k": sf.Count("k"), "n": sf.Count("n")})
    a, b = "0101101011", "0011010111"
    zeros = {"a": list(a), "b": list(b), "c": ["1" if pair == ("1", "1") else "0" for pair in zip(a, b, strict=True)]}
    chain = sf.fit(sf.Template("ill[-1] -> ill; smoke -> ill; smoke[-1] -> smoke"), sf.sequences(steps, by="id", order="t"))
    return {
        "pairs": pairs,
        "twins": twins,
        "regression": regression,
        "waits": sf.fit("wait -> ill", rows, families={"wait": sf.exponential.Gamma(), "ill": sf.Logistic()}),
        "zeros": zeros,
        "chain": chain,
        "unlike": {"a": ["u", "v"] * 9, "e": ["u", "w"] * 9},
        "flags": sf.undirected.Features({"f": {"0": 0.0, "1": 1.0}}, over=[sf.Finite("a", ["0", "1"])]),
        "restored": restored({name: gaps[name] for name in ("ill", "smoke")}),
        "uniform": sf.MarkovNet({"a": [0.0, 0.0]}, [sf.Finite("a", ["0", "1"])]),
        "start": sf.fit("h -> ill; h -> smoke; h -> c", {**rows, "h": pairs_of(n)}),
        "tosses": sf.fit("n -> k", tossed, families={"k": sf.regressions.BinomialLogit(trials="n")}),
        "gathered": sf.fit("x -> k", counted, families={"k": sf.regressions.PoissonLog()}),
        "rows": rows,
        "counted": counted,
        "steps": steps,
        "gaps": gaps,
        "finite": {name: rows[name] for name in ("ill", "smoke", "c")},
        "numbers": {name: rows[name] for name in ("x", "z", "wait")},
        "some": {name: gaps[name] for name in ("ill", "smoke", "c")},
        "seq": sf.sequences(steps, by="id", order="t"),
        "asia": sf.load("asia"),
    }


OBEYED = """
search({"a": [1, 2, 3] * 30, "b": ["u", "v", "w"] * 30})
    search(scan({"a": [1, 2, 3] * 30, "b": ["u", "v", "w"] * 30}, integers=Real))
    search(scan({"a": [1, 2, 3] * 30, "b": ["u", "v", "w"] * 30}, variables={"a": Real}))
search({"a": [1, 2, 3, 1] * 2, "b": ["u", "v", "w", "u"] * 2})
    search(scan({"a": [1, 2, 3, 1] * 2, "b": ["u", "v", "w", "u"] * 2}, integers=Finite))
search({"a": list(range(120)), **finite})
    search(scan({"a": list(range(120)), **finite}, variables={"a": Real}))
search({"a": [f"p{i}" for i in range(120)], **finite})
    search(scan({"a": [f"p{i}" for i in range(120)], **finite}, variables={"a": Finite}))
search({"a": [f"2020-{1 + i % 12:02}-{1 + i // 12:02}" for i in range(120)], **finite})
    search(scan({"a": [f"2020-{1 + i % 12:02}-{1 + i // 12:02}" for i in range(120)], **finite}, variables={"a": Finite}))
search({"a": ["u", "v", "NA"] * 40, **finite})
    learn(scan({"a": ["u", "v", "NA"] * 40, **finite}, missing=["NA"]))
search({"a": [" yes", "yes", "no"] * 40, **finite})
    search(scan({"a": [" yes", "yes", "no"] * 40, **finite}, variables={"a": ["no", "yes"]}))
scan("latin.csv").n_rows
    scan("latin.csv", encoding="latin-1").n_rows
scan("semi.csv").n_rows
    scan("semi.csv", separator=",").n_rows
scan(rows, separator=";")
    scan(rows)
scan("rows.parquet", separator=";")
    scan("rows.parquet")
sequences({**steps, "t": [t + (t > 5) for t in steps["t"]]}, by="id", order="t").n_steps
    sequences({**steps, "t": [t + (t > 5) for t in steps["t"]]}, by="id", order="t", gaps=Missing()).n_steps
    sequences({**steps, "t": [t + (t > 5) for t in steps["t"]]}, by="id").n_steps
sequences({**steps, "t": [t * 10**9 + (t > 5) for t in steps["t"]]}, by="id", order="t", gaps=Missing()).n_steps
    sequences(steps, by="id", order="t", gaps=Missing()).n_steps
sequences({**steps, "id": [1, 2] * 60}, by="id").n_steps
    sequences({**steps, "id": [1, 2] * 60, "t": list(range(120))}, by="id", order="t", gaps=Missing()).n_steps
sequences(steps, by="id", order="id")
    sequences(steps, by="id", order="t")
sequences(steps, by=3)
    sequences(steps, by="id")
sequences(steps, by="idd")
    sequences(steps, by="id")
asia.predict({"smoke": ["perhaps"]}, "lung")
    asia.predict({"smoke": ["perhaps"]}, "lung", unknown=Missing())
fit("x -> ill", rows)
    fit("x -> ill", rows, families={"ill": Logistic()})
    fit("x -> ill", scan(rows, variables={"x": Bins(5)}))
fit("x -> k", counted)
    fit("x -> k", counted, families={"k": PoissonLog()})
    fit("x -> k", scan(rows, variables={"x": Bins(5), "k": Count("k")}))
fit("x -> wait", rows, families={"wait": ef.Gamma()})
    fit("x -> wait", rows, families={"wait": GammaLog()})
    fit("x -> wait", scan(rows, variables={"x": Bins(5)}), families={"wait": ef.Gamma()})
fit("c -> ill", {"c": ["a", "b"], "ill": ["no", "yes"]}, prior=Dirichlet(0.5), estimate=Mode())
    fit("c -> ill", {"c": ["a", "b"], "ill": ["no", "yes"]}, prior=Dirichlet(0.5), estimate=Mean())
fit("wait", gather(rows, Dag("wait")), families={"wait": ef.Gamma()})
    fit("wait", rows, families={"wait": ef.Gamma()})
gather(rows, max_parents=4, memory_limit=10)
    gather(finite, max_parents=1, memory_limit=10**9)
gather(finite)
    gather(finite, max_parents=2)
gather(finite, Graph("ill -- smoke"), max_parents=2)
    gather(finite, Graph("ill -- smoke"))
gather(rows, Dag("ill[-1] -> ill"))
    gather(sequences(steps, by='id', order='t'), Template("ill[-1] -> ill"))
gather(finite, Dag("h -> ill"))
    em(Dag("h -> ill; h -> c"), finite, hidden=[Finite("h", ["a", "b"])], max_iter=3)
gather(seq, Template("h[-1] -> h -> ill"))
    em(Template("h[-1] -> h -> ill"), seq, hidden=[Finite("h", ["a", "b"])], max_iter=3)
fit("ill -> smoke", some, prior=HierarchicalDirichlet())
    fit("ill -> smoke", some, prior=by_evidence("ill -> smoke", finite, HierarchicalDirichlet()))
fit(Plate("ill -> smoke", group="c", pooling=Partial()), {**some, "c": finite["c"]})
    fit(Plate("ill -> smoke", group="c", pooling=Pooled()), {**some, "c": finite["c"]})
    fit(Plate("ill -> smoke", group="c", pooling=Separate()), {**some, "c": finite["c"]})
fit("ill -> smoke", some, prior=LogisticNormal(variance=None))
    fit("ill -> smoke", some, prior=by_evidence("ill -> smoke", finite, LogisticNormal(variance=None)))
fit(Graph("ill -- smoke"), finite, prior=LogisticNormal())
    fit(Graph("ill -- smoke"), finite, prior=BDeu(1))
score(Plate("x", group="c", pooling=Partial()), rows, Evidence(NormalInverseGamma()))
    score(Plate("x", group="c", pooling=Partial()), rows, BIC())
fit("ill -> k", rows, families={"k": PoissonLog()})
    fit("ill -> k", scan(rows, variables={"k": Count("k")}), families={"k": PoissonLog()})
fit("z -> x", rows, families={"x": Logistic()})
    fit("z -> x", scan(rows, variables={"x": Finite}), families={"x": Logistic(ridge=1)})
fit("n -> k", scan({"n": [9] * 9, "k": [3, 4, 5] * 3}, variables={"k": Count("k")}), families={"k": BinomialLogit()})
    fit("n -> k", {"n": [9] * 9, "k": [3, 4, 5] * 3}, families={"k": BinomialLogit(trials="n")})
    fit("k", {"k": [3, 4, 5] * 3}, families={"k": ef.Binomial(12)})
search(rows, families=Logistic())
    search(rows, families={"ill": Logistic()})
search(counted, families={"k": NegativeBinomialLog()})
    search(counted, families={"k": PoissonLog()})
search(rows, families={"il": Logistic()})
    search(rows, families={"ill": Logistic()})
fit("x -> c", rows, families={"c": ProportionalOdds()})
    fit("x -> c", scan(rows, variables={"c": ["a", "b", "c"]}), families={"c": ProportionalOdds()})
fit("k", scan({"k": [0, 0, 0]}, variables={"k": Count("k")}), prior=Gamma(0.5), estimate=Mode())
    fit("k", scan({"k": [0, 0, 0]}, variables={"k": Count("k")}), prior=Gamma(0.5), estimate=Mean())
fit("ill -> smoke", some, prior=EmpiricalBayes(BDeu()))
    fit("ill -> smoke", some, prior=by_evidence("ill -> smoke", finite, BDeu()))
fit("ill -> smoke", finite, prior=BDs(1))
    score("ill -> smoke", finite, Evidence(BDs(1)))
fit("ill -> smoke", finite).query("smoke", interval=0.9)
    fit("ill -> smoke", finite, prior=BDeu(1)).query("smoke", interval=0.9)
fit("x; x -> z", rows)["z"].interval(0.9)
    fit("x; x -> z", rows, prior=NormalInverseGamma())["z"].interval(0.9)
write(fit(Template("ill[-1] -> ill"), seq), "out.bif")
    write(fit(Template("ill[-1] -> ill"), seq).unroll(3), "out.bif")
write(fit(Graph("ill -- smoke"), finite), "out.bif")
    write(fit(Graph("ill -- smoke"), finite).to_bayes_net(), "out.bif")
score("x -> ill", rows, Evidence((BDeu(1), BGe())), families={"ill": Logistic()})
    score("x -> ill", rows, Evidence((BDeu(1), BGe())), families={"ill": Logistic(ridge=1)})
    score("x -> ill", rows, BIC(), families={"ill": Logistic()})
score("x -> wait", rows, Evidence(BGe()), families={"wait": GammaLog()})
    score("x -> wait", rows, BIC(), families={"wait": GammaLog()})
score("x; ill", rows, Evidence(BDeu(1)))
    score("x; ill", rows, Evidence((BDeu(1), BGe())))
CasteloSiebes({("ill", "smoke"): 1.0})
    search(finite, constraints=Require(("ill", "smoke")))
Tiers()
    Tiers(['age', 'sex'], ['smoke'])
search(rows, constraints=Require(("x", "ill")))
    search(rows, constraints=Require(("x", "ill")), families={"ill": Logistic()})
search(sequences(dict(gaps, id=steps["id"], t=steps["t"]), by="id", order="t"))
    em(Template("ill[-1] -> ill"), sequences(dict(gaps, id=steps["id"], t=steps["t"]), by="id", order="t"), max_iter=2)
search({f"v{i}": list(np.random.default_rng(i).normal(size=50)) for i in range(60)}, method=Exact(max_parents=40))
    search({f"v{i}": list(np.random.default_rng(i).normal(size=50)) for i in range(60)}, method=Orders(max_parents=1), \
score=EBIC(1))
search(finite, method=GES(), score=Evidence(K2()))
    search(finite, method=GES(), score=Evidence(BDeu(1)))
    search(finite, method=GES(), score=BIC())
search(rows, method=GES(), families={"ill": Logistic()})
    search(rows, method=HillClimb(), families={"ill": Logistic()})
search({"x": rows["x"], "ill": rows["ill"]})
    search({"x": rows["x"], "ill": rows["ill"]}, families={"ill": Logistic()})
    search(scan({"x": rows["x"], "ill": rows["ill"]}, variables={"x": Bins(5)}))
em("x -> ill", {"x": [1.0, 2, 3, 4, None], "ill": list("aabba")}, families={"ill": Logistic()})
    em("x -> ill", {"x": [1.0, 2, 3, 4, None], "ill": list("aabba")}, families={"ill": Logistic(ridge=1)})
search(finite, memory_limit=10)
    search(finite, memory_limit=10**9)
search({"x": [1.0, 2, 3, 4, 5, 6], "y": ["a"] * 3 + ["b"] * 3}, families={"y": Logistic()})
    search({"x": [1.0, 2, 3, 4, 5, 6], "y": ["a"] * 3 + ["b"] * 3}, families={"y": Logistic(ridge=1)})
search(some)
    structural_em(some, max_iter=3)
    learn(some)
search({f"v{i}": list(np.random.default_rng(i).normal(size=20)) for i in range(40)})
    search({f"v{i}": list(np.random.default_rng(i).normal(size=20)) for i in range(40)}, score=EBIC(1))
search(seq, families={"ill": Logistic()})
    search(seq)
learn(seq, families={"ill": Logistic()})
    learn(seq)
cross_validate(seq, families={"ill": Logistic()}, folds=2)
    cross_validate(seq, folds=2)
search(gather(finite, max_parents=3), families={"ill": Logistic()})
    search(finite, families={"ill": Logistic()})
search(numbers, method=GraphicalLasso(), families={"x": Linear()})
    search(numbers, method=GraphicalLasso())
independence_test(rows, "x", "ill", test=GSquared())
    independence_test(rows, "x", "ill", test=LikelihoodRatio())
search(rows, method=Decomposable())
    search(scan(rows, variables={n: Bins(2) for n in ("x", "z", "wait", "k")}), method=Decomposable())
search(finite, method=Decomposable(Evidence(K2())))
    search(finite, method=Decomposable(Evidence(BDeu(1))))
search(rows, method=GraphicalLasso())
    search(rows, method=Neighbourhoods())
search(gather(numbers, Graph("x -- z; z -- wait; x -- wait")), method=GraphicalLasso(select=StARS()))
    search(gather(numbers, Graph("x -- z; z -- wait; x -- wait")), method=GraphicalLasso(select=EBIC(0.5)))
StARS(threshold=0.9)
    StARS(threshold=0.1)
scan("thousand.csv", separator=";").schema
    scan("thousand.csv", separator=";", decimal=",").schema
scan("points.csv", decimal=",").schema
    scan("points.csv").schema
scan("commas.csv", separator=";").schema
    scan("commas.csv", separator=";", decimal=",").schema
scan("commas.csv", {"a": Real}, separator=";").n_rows
    scan("commas.csv", separator=";", decimal=",").n_rows
read("semi.csv")
    learn(data="semi.csv")
scan("words.csv").schema
    scan("words.csv", missing=["NA"]).schema
scan("endless.csv").schema
    scan("endless.csv", missing=["inf"]).schema
search({"a": [f"{i}.5" for i in range(118)] + ["NA", "NA"], **finite})
    learn(scan({"a": [f"{i}.5" for i in range(118)] + ["NA", "NA"], **finite}, missing=["NA"], variables={"a": Real}))
sequences(scan({**steps, "w": [1.0] * 120}, weights="w"), by="w")
    sequences(scan({**steps, "w": [1.0] * 120}, weights="w"), by="id").n_steps
fit("c -> w", {"w": [2.0, 2.0, 1.0, 3.0], "c": list("aabb")}, families={"w": ef.Gamma()})
    fit("c -> w", {"w": [2.0, 2.0, 1.0, 3.0], "c": list("aabb")}, families={"w": ef.Gamma()}, prior=Conjugate(1))
fit("w", {"w": [2.0, 2.0, 2.0]}, families={"w": ef.Gamma()})
    fit("w", {"w": [2.0, 2.0, 2.0]}, families={"w": ef.Gamma()}, prior=Conjugate(1, mean=ef.Gamma(2, 1)))
search({"a": list(range(120)), **finite}, constraints=Require(("ill", "a")))
    search(scan({"a": list(range(120)), **finite}, variables={"a": Real}), constraints=Require(("ill", "a")))
search(numbers, method=GraphicalLasso(), constraints=Tiers(["x"], ["z"]))
    search(numbers, method=GraphicalLasso(), constraints=Forbid(("x", "z")))
search(finite, time_limit=-1)
    search(finite, time_limit=5)
fit(Template("ill[-1] -> ill"), seq, first=3)
    fit(Template("ill[-1] -> ill"), seq, first=Free())
fit(Template("ill[-1] -> ill"), rows)
    fit(Template("ill[-1] -> ill"), sequences(steps, by="id", order="t"))
fit(Template("h[-1] -> h -> ill"), seq)
    em(Template("h[-1] -> h -> ill"), seq, hidden=[Finite("h", ["a", "b"])], max_iter=3)
em(Template("h[-1] -> h -> ill"), seq)
    em(Template("h[-1] -> h -> ill"), seq, hidden=[Finite("h", ["a", "b"])], max_iter=3)
em(Template("q[-1] -> q -> ill"), sequences({**steps, "q": [None] * 120}, by="id", order="t"))
    em(Template("q[-1] -> q -> ill"), seq, hidden=[Finite("q", ["a", "b"])], max_iter=3)
em(Template("h[-1] -> h -> ill"), seq, hidden=[Finite("h", ["a", "b"])], families={"illl": Logistic()})
    em(Template("h[-1] -> h -> ill"), seq, hidden=[Finite("h", ["a", "b"])], max_iter=2)
fit(Template("ill[-1] -> ill"), seq, families=3)
    fit(Template("x[-1] -> x; x -> ill"), seq, families={"ill": Logistic()})
fit(Template("ill[-1] -> ill"), seq, shared=[("ill", "smoke")])
    fit(Template("ill[-1] -> ill"), seq)
fit("ill -> smoke", finite, first=Stationary())
    fit(Template("ill[-1] -> ill"), sequences(steps, by="id", order="t"), first=Stationary())
fit(Template("ill[-2] -> ill"), seq, first=Stationary())
    fit(Template("ill[-2] -> ill"), seq)
fit(Template("ill[-1] -> ill; smoke -> ill"), seq, first=Stationary())
    fit(Template("ill[-1] -> ill; smoke -> ill"), seq, first=Free())
fit(Template("x[-1] -> x; x -> ill"), seq, families={"ill": Logistic()}, first=Stationary())
    fit(Template("x[-1] -> x; x -> ill"), seq, families={"ill": Logistic()}, first=Free())
fit(Template("x[-1] -> x"), seq, first=Diffuse())
    em(Template("level[-1] -> level -> x"), seq, hidden=[Real("level")], first=Diffuse(), max_iter=3)
em(Template("ill[-1] -> ill"), seq, first=Diffuse())
    em(Template("ill[-1] -> ill"), seq, first=Free())
fit(Plate("ill -> smoke", group="c", inside=[], pooling=Separate()), finite)
    fit(Plate("ill -> smoke", group="c", pooling=Separate()), finite)
fit(Plate("ill -> smoke", columns={"smoke": ["smoke"]}, inside=["smoke"]), finite)
    fit(Plate("ill -> smoke", group="c", inside=["smoke"], pooling=Separate()), finite)
fit(Plate("ill -> smoke", group="c", inside=["smok"], pooling=Separate()), finite)
    fit(Plate("ill -> smoke", group="c", inside=["smoke"], pooling=Separate()), finite)
entropy(scan(numbers))
    entropy(scan(numbers, variables={"x": Bins(3), "z": Bins(3), "wait": Bins(3)}))
fit(LinearChain("ill", [Window(["smoke"])]), seq, penalty=L2(0.01), max_iter=1)
    fit(LinearChain("ill", [Window(["smoke"])]), seq, penalty=L2(0.01), max_iter=500)
fit(LinearChain("ill", [Window(["smoke"])], order=2), seq, objective=Margin("ill"), penalty=L2(1.0))
    fit(LinearChain("ill", [Window(["smoke"])], order=2), seq, objective=Conditional("ill"), penalty=L2(1.0))
em(Template("ill[-1] -> ill"), seq, missing_depends_on={"ill": ["ill"]})
    em(Template("ill[-1] -> ill"), seq)
em("ill -> smoke; ill -> c", finite, fixed=["ill"])
    em("ill -> smoke; ill -> c", finite, fixed=["ill"], start=fit("ill -> smoke; ill -> c", finite))
em("a -> c; b -> d", pairs, shared=[("c", "d")], fixed=["c"], start=fit("a -> c; b -> d", pairs))
    em("a -> c; b -> d", pairs, fixed=["c"], start=fit("a -> c; b -> d", pairs))
em("a -> c", pairs, fixed={"c": ["intercept"]}, start=fit("a -> c", pairs))
    em("a -> c", pairs, fixed={"c": True}, start=fit("a -> c", pairs))
em("h -> ill; h -> smoke; h -> c", finite, hidden=[Finite("h", ["a", "b"])], max_iter=2)
    em("h -> ill; h -> smoke; h -> c", finite, hidden=[Finite("h", ["a", "b"])], max_iter=9, method=Squarem(), tol=1e9)
em("h -> ill; h -> smoke; h -> c", finite, hidden=[Finite("h", ["a", "b"])], batches=4, fixed=["ill"], start=start)
    em("h -> ill; h -> smoke; h -> c", finite, hidden=[Finite("h", ["a", "b"])], batches=4, start=start)
em("x", {"x": [1.0, 1.0, None, 1.0]})
    em("x", {"x": [1.0, 1.0, None, 1.0]}, prior=NormalInverseGamma(variance=1.0))
em("q -> ill", {"q": [None] * 120, **finite})
    em("q -> ill; q -> smoke; q -> c", finite, hidden=[Finite("q", ["a", "b"])], max_iter=2)
em("q -> ill", finite)
    em("q -> ill; q -> smoke; q -> c", finite, hidden=[Finite("q", ["a", "b"])], max_iter=2)
em("ill -> smoke", finite, hidden=[Finite("ill", ["no", "yes"])])
    em("ill -> smoke", finite)
em("ill -> smoke", some, families={"smok": Logistic()})
    em("ill -> smoke", some, families={"smoke": Logistic()}, max_iter=3)
em("ill -> smoke", some, families=3)
    em("ill -> smoke", some, families={"smoke": Logistic()}, max_iter=3)
gradient("ill -> smoke", some, max_iter=1)
    gradient("ill -> smoke", some, max_iter=500)
fit("ill -> smoke", finite, missing_depends_on={"ill": ["c"]}, objective=Conditional("ill"))
    fit("ill -> smoke", finite, objective=Conditional("ill"), penalty=L2(0.1))
fit("ill -> smoke", finite, penalty=L2(0.1))
    fit("ill -> smoke", finite)
    fit("ill -> smoke", finite, objective=Conditional("ill"), penalty=L2(0.1))
score("x -> ill", rows, GraphPosterior(Evidence(BDeu(1)), KollerFriedman()), families={"ill": Logistic()})
    score("x -> ill", rows, BIC(), families={"ill": Logistic()})
score("x -> y1; x -> y2", twins, Evidence((BDeu(1), BGe())), families={"y1": Logistic(), "y2": Logistic()}, shared=[("y1", "y2")])
    score("x -> y1; x -> y2", twins, BIC(), families={"y1": Logistic(), "y2": Logistic()}, shared=[("y1", "y2")])
fit("ill -> smoke -> c", some, missing_depends_on={"ill": ["ill"]})
    fit("ill -> smoke -> c", {**finite, "ill": some["ill"]}, missing_depends_on={"ill": ["smoke"]})
fit("ill -> smoke", some, missing_depends_on=3)
    fit("ill -> smoke", some, missing_depends_on={"ill": ["smoke"], "smoke": []})
fit("ill -> smoke", some, missing_depends_on={"ill": 3})
    fit("ill -> smoke", some, missing_depends_on={"ill": ["smoke"], "smoke": []})
fit("ill -> smoke", {**some, "smoke": finite["smoke"]}, missing_depends_on={"smoke": ["ill"]})
    fit("ill -> smoke", {**some, "smoke": finite["smoke"]})
fit("ill -> smoke", some, missing_depends_on={"il": ["smoke"]})
    fit("ill -> smoke", some, missing_depends_on={"ill": ["smoke"], "smoke": []})
fit("ill -> smoke; x", {**some, "x": gaps["x"]}, missing_depends_on={"ill": ["x"]})
    fit("ill -> smoke; x", scan({**some, "x": gaps["x"]}, variables={"x": Bins(3)}), missing_depends_on={"ill": ["x"]})
mixture({"x": [1.0] * 20, "z": numbers["z"][:20]}, 2, starts=1)
    mixture({"x": [1.0] * 20, "z": numbers["z"][:20]}, 2, starts=1, prior=(Dirichlet(1), NormalInverseGamma(variance=1.0)))
mixture(finite, 2, prior=Dirichlet(0.01), estimate=Mode(), starts=1)
    mixture(finite, 2, prior=Dirichlet(0.01), estimate=Mean(), starts=1)
mixture(scan({"k": [0, 0, 9, 8]}, variables={"k": Count("k")}), 2, prior=Gamma(0.1), estimate=Mode(), starts=1)
    mixture(scan({"k": [0, 0, 9, 8]}, variables={"k": Count("k")}), 2, prior=Gamma(0.1), estimate=Mean(), starts=1)
fit("ill -> smoke", finite, objective=PseudoLikelihood())
    fit("ill -> smoke", finite, objective=Likelihood())
fit(LogLinear([("a", "b"), ("b", "c"), ("a", "c")]), zeros)
    fit(LogLinear([("a", "b"), ("b", "c"), ("a", "c")]), zeros, penalty=L2(0.1))
    fit(LogLinear([("a", "b"), ("b", "c"), ("a", "c")]), zeros, penalty=L1(0.1))
    fit(LogLinear([("a", "b"), ("b", "c"), ("a", "c")]), zeros, prior=BDeu(1))
fit(Ising(Graph("a -- b; b -- c; a -- c")), zeros)
    fit(Ising(Graph("a -- b; b -- c; a -- c")), zeros, penalty=L2(0.1))
fit("a -- b", zeros, objective=PseudoLikelihood(), progress=lambda step: True)
    fit("a -- b", zeros, objective=ContrastiveDivergence(), progress=lambda step: True)
fit(LogLinear([("a", "b"), ("b", "c"), ("a", "c")]), zeros, objective=PseudoLikelihood())
    fit(LogLinear([("a", "b"), ("b", "c"), ("a", "c")]), zeros, objective=PseudoLikelihood(), penalty=L2(0.1))
fit(LogLinear([("a", "b"), ("b", "c"), ("a", "c")]), zeros, objective=Conditional("a"))
    fit(LogLinear([("a", "b"), ("b", "c"), ("a", "c")]), zeros, objective=Conditional("a"), penalty=L2(0.1))
fit(LogLinear([("a", "b"), ("b", "c")]), zeros, objective=PseudoLikelihood(), method=IPF())
    fit(LogLinear([("a", "b"), ("b", "c")]), zeros, objective=PseudoLikelihood(), penalty=L2(0.1))
fit(LogLinear([("a", "b"), ("b", "c")]), gather(zeros, Graph("a -- b; b -- c")), objective=ContrastiveDivergence(1))
    fit(LogLinear([("a", "b"), ("b", "c")]), gather(zeros, Graph("a -- b; b -- c")), \
objective=ContrastiveDivergence(persistent=True), penalty=L2(1))
fit(LogLinear([("a", "b"), ("b", "c")]), zeros, objective=PseudoLikelihood(), base=uniform)
    fit(LogLinear([("a", "b"), ("b", "c")]), zeros, objective=Likelihood())
fit(LogLinear([("a", "b"), ("b", "c")]), zeros, objective=ContrastiveDivergence(), base=uniform)
    fit(LogLinear([("a", "b"), ("b", "c")]), zeros, objective=Likelihood())
fit(Graph("x -- z"), numbers, penalty=L2(0.1))
    search(numbers, method=GraphicalLasso())
fit(LogLinear([("a", "b"), ("b", "c"), ("a", "c")]), zeros, penalty=L2(0.1), prior=BDeu(1))
    fit(LogLinear([("a", "b"), ("b", "c"), ("a", "c")]), zeros, prior=BDeu(1))
fit(LogLinear([("a", "b"), ("b", "c"), ("a", "c")]), pairs, method=IPF(max_iter=1, tol=1e-15))
    fit(LogLinear([("a", "b"), ("b", "c"), ("a", "c")]), pairs, method=LBFGS())
fit(Graph("ill -- smoke -- c"), finite, prior=K2())
    fit(Graph("ill -- smoke -- c"), finite, prior=BDeu(1))
rbm({"a": finite["ill"], "b": finite["smoke"]}, 2, penalty=L2({("a", "b"): 1.0}), epochs=1)
    rbm({"a": finite["ill"], "b": finite["smoke"]}, 2, penalty=L2(0.1), epochs=1)
rbm(counted, 2, epochs=1)
    rbm(scan(rows, variables={"k": Bins(3)}), 2, epochs=1)
chain.update(rows)
    chain.update(sequences(steps, by="id", order="t"))
chain.smooth(rows)
    chain.smooth(sequences({**steps, "ill": [None if i % 3 == 0 else v for i, v in enumerate(steps["ill"])]}, by="id", order="t"))
chain.forecast(seq, 2, given={"smok": ["yes", "no"]})
    chain.forecast(seq, 2, given={"smoke": ["yes", "no"]})
chain.forecast(seq, 2, given={"smoke": ["yes"]})
    chain.forecast(seq, 2, given={"smoke": ["yes", "no"]})
chain.forecast(seq, 2, given={"smoke": ["yes", None]})
    chain.forecast(seq, 2)
chain.forecast(seq, 2, given={"id": [0, 0], "smoke": ["yes", "no"]})
    chain.forecast(seq, 2, given={"smoke": ["yes", "no"]})
fit("ill -> smoke", finite).impute(some, draws=2)
    fit("ill -> smoke", finite, prior=BDeu(1)).impute(some, draws=2)
fit("a -> c; b -> d", pairs, shared=[("c", "d"), ("d", "c")])
    fit("a -> c; b -> d", pairs, shared=[("c", "d")])
fit("a -> c; b -> d", pairs, shared=3)
    fit("a -> c; b -> d", pairs, shared=[("c", "d")])
fit("a -> c; b -> d", pairs, shared=[3])
    fit("a -> c; b -> d", pairs, shared=[("c", "d")])
fit("a -> c; b -> d", pairs, shared=[("c",)])
    fit("a -> c; b -> d", pairs, shared=[("c", "d")])
fit("a -> c; b -> d", pairs, shared=[("c", "e")])
    fit("a -> c; b -> d", pairs, shared=[("c", "d")])
fit("a -> c; b -> d", pairs, shared=[("c", "c")])
    fit("a -> c; b -> d", pairs, shared=[("c", "d")])
fit("a -> c; b -> d", pairs, shared=[{"c": ["b"], "d": ["b"]}])
    fit("a -> c; b -> d", pairs, shared=[{"c": ["a"], "d": ["b"]}])
fit("x -> y1; x -> y2", twins, families={"y1": Logistic(), "y2": Probit()}, shared=[("y1", "y2")])
    fit("x -> y1; x -> y2", twins, families={"y1": Logistic(), "y2": Logistic()}, shared=[("y1", "y2")])
    fit("x -> y1; x -> y2", twins, families={"y1": Logistic(), "y2": Probit()})
fit("a; e", unlike, shared=[("a", "e")])
    fit("a; e", scan(unlike, variables={"a": ["u", "v", "w"], "e": ["u", "v", "w"]}), shared=[("a", "e")])
BayesNet("a -> b", {"a": [0.5, 0.5], "b": [[0.5, 0.5], [0.5, 0.5]]})
    BayesNet("a -> b", {"a": [0.5, 0.5], "b": [[0.5, 0.5], [0.5, 0.5]]}, variables=[Finite("a", ["n", "y"]), Finite("b", \
["n", "y"])])
fit(LinearChain("ill", [Window(["smoke"])], transitions=BIO()), seq, penalty=L2(1.0))
    fit(LinearChain("ill", [Window(["smoke"])], transitions=Transitions(forbidden=[])), seq, penalty=L2(1.0))
fit(LinearChain("ill", [Window(["smoke"])], transitions=BIOES()), seq, penalty=L2(1.0))
    fit(LinearChain("ill", [Window(["smoke"])], transitions=Transitions(forbidden=[])), seq, penalty=L2(1.0))
fit(Graph("a -- b; b -- c; c -- d; a -- d"), pairs, prior=BDeu(1)).log_evidence
    fit(Graph("a -- b; b -- c; c -- d"), pairs, prior=BDeu(1)).log_evidence
regression.query("x", given={"ill": "yes"})
    regression.query("x", given={"ill": "yes"}, method=LikelihoodWeighting())
regression.query("ill")
    regression.query("ill", given={"x": 1.0})
    regression.query("ill", method=LikelihoodWeighting())
regression.marginals()
    regression.query("ill", method=LikelihoodWeighting())
regression.most_probable()
    regression.most_probable({"x": 1.0})
    regression.query("ill", method=LikelihoodWeighting()).mode
waits.predict_proba({"wait": [None]}, "ill")
    waits.predict_proba({"wait": [None]}, "ill", method=LikelihoodWeighting())
waits.impute({"wait": [None, 1.0], "ill": ["yes", None]})
    waits.predict({"wait": [None, 1.0]}, "ill", method=LikelihoodWeighting())
fit("x -> z", numbers).impute({"x": [None], "z": [1.0]}, joint=True)
    fit("x -> z", numbers).impute({"x": [None], "z": [1.0]})
fit("ill -> smoke", finite).impute(some, joint=True, draws=2)
    fit("ill -> smoke", finite).impute(some, joint=True)
fit("ill -> smoke", finite).impute(some, redraw=True)
    fit("ill -> smoke", finite, prior=BDeu(1)).impute(some, redraw=True, draws=2)
fit(Graph("a -- b -- c; a -- c"), {"a": [1.0, 2, 4], "b": [1.0, 3, 2], "c": [0.0, 1, 5]})
    search({"a": [1.0, 2, 4], "b": [1.0, 3, 2], "c": [0.0, 1, 5]}, method=GraphicalLasso(0.5))
search(scan({"x": rows["x"], "k": rows["k"]}, variables={"k": Count("k")}), method=GraphicalLasso())
    search(scan({"x": rows["x"], "k": rows["k"]}, variables={"k": Real}), method=GraphicalLasso())
fit(Graph("x -- ill"), rows)
    fit(Graph("x -- ill"), scan(rows, variables={"x": Bins(3)}))
fit(LogLinear([("a", "b"), ("b", "c")]), zeros, penalty=3)
    fit(LogLinear([("a", "b"), ("b", "c")]), zeros, penalty=L1(0.1))
L2(-1)
    L2(0.1)
naive_bayes(rows, "x")
    naive_bayes(rows, "x", variables={"x": Bins(3)})
hmm(seq, 2, families=3)
    hmm(seq, 2, families={"x": Full()}, starts=1, max_iter=3)
hmm(seq, 2, families={"xx": Full()})
    hmm(seq, 2, families={"x": Full()}, starts=1, max_iter=3)
hmm(seq, 2, starts=1, max_iter=1)
    hmm(seq, 2, starts=1, max_iter=4, tol=1e9)
bootstrap(some, n=2, dry_run=True)
    bootstrap(some, n=2)
bootstrap(some, n=2, memory_limit=8)
    bootstrap(some, n=2, memory_limit=10**9)
structural_em(gather(finite, max_parents=2))
    search(gather(finite, max_parents=2))
structural_em(numbers, hidden=[Real("g")])
    em("g -> x; g -> z; g -> wait", numbers, hidden=[Real("g")], max_iter=3)
structural_em(some, method=PC())
    structural_em(some, method=HillClimb(), max_iter=2)
structural_em({"wait": gaps["wait"], "ill": rows["ill"]}, families={"wait": GammaLog()})
    em("ill -> wait", {"wait": gaps["wait"], "ill": rows["ill"]}, families={"wait": GammaLog()})
read("words.csv")
    learn("words.csv")
em("ill -> smoke; h -> smoke; h -> c", finite, hidden=[Finite("h", ["a", "b"])], prior=Dirichlet(0.01), estimate=Mode())
    em("ill -> smoke; h -> smoke; h -> c", finite, hidden=[Finite("h", ["a", "b"])], prior=Dirichlet(0.01), estimate=Mean(), \
max_iter=3)
fit(Template("wait[-1] -> wait"), seq, families={"wait": ef.Gamma()})
    fit(Template("wait[-1] -> wait"), seq)
fit("k", scan({"k": [3, 3, 3, 3, 4, 3]}, variables={"k": Count("k")}), families={"k": NegativeBinomialLog()})
    fit("k", scan({"k": [3, 3, 3, 3, 4, 3]}, variables={"k": Count("k")}), families={"k": PoissonLog()})
fit("ill -> smoke; ill -> c", finite, objective=Bayes(None))
    fit("ill -> smoke; ill -> c", finite, objective=Bayes(BDeu(1)))
gathered.query("k", method=Gibbs(100))
    gathered.query("k", method=LikelihoodWeighting())
fit("x -> wait", rows, families={"wait": GammaLog()}).query("x", given={"wait": 1.0}, method=Gibbs())
    fit("x -> wait", rows, families={"wait": GammaLog()}).query("x", given={"wait": 1.0}, method=LikelihoodWeighting())
tosses.do({"n": 5})
    tosses.query("k", given={"n": 5})
fit(LogLinear([("a", "b"), ("b", "c")]), zeros, base=uniform)
    fit(flags, {"f": 0.3}, objective=MaxEntropy(), base=uniform)
fit(LogLinear([("a", "b"), ("b", "c")]), zeros, objective=Conditional("a"), base=uniform)
    fit(flags, {"f": 0.3}, objective=MaxEntropy(), base=uniform)
score(Plate("x", group="c", pooling=Partial()), {"x": rows["x"], "c": rows["c"]}, Evidence((BDeu(1), NormalInverseGamma())))
    score(Plate("x", group="c", pooling=Partial()), {"x": rows["x"], "c": rows["c"]}, BIC())
em(Template("level[-1] -> level -> x; smoke -> level"), seq, hidden=[Real("level")], first=Stationary(), max_iter=2)
    em(Template("level[-1] -> level -> x; smoke -> level"), seq, hidden=[Real("level")], first=Free(), max_iter=2)
em(Template("level[-1] -> level -> x; h[-1] -> h -> ill"), seq, hidden=[Real("level"), Finite("h", ["a", "b"])], \
first=Stationary())
    em(Template("h[-1] -> h -> ill"), seq, hidden=[Finite("h", ["a", "b"])], first=Stationary(), max_iter=2)
em(Template("level[-1] -> level -> ill"), seq, hidden=[Real("level")], families={"ill": Logistic()})
    em(Template("x[-1] -> x -> ill"), seq, families={"ill": Logistic()})
em("wait -> x", {"wait": gaps["wait"], "x": rows["x"]}, families={"wait": ef.Gamma()})
    em("wait -> x", scan({"wait": gaps["wait"], "x": rows["x"]}, variables={"wait": Bins(3)}))
em("k -> x", scan({"k": [10**6, 10**6 + 40, None] * 40, "x": rows["x"]}, variables={"k": Count("k")}))
    em("k -> x", scan({"k": [10**6, 10**6 + 40, None] * 40, "x": rows["x"]}, variables={"k": Bins(2)}))
rbm({"a": finite["ill"], "b": finite["smoke"]}, 2, rate=50.0, epochs=2)
    rbm({"a": finite["ill"], "b": finite["smoke"]}, 2, rate=0.01, epochs=20)
fit("a -> f; e -> g", {**unlike, "f": ["u", "v"] * 9, "g": ["u", "v"] * 9}, shared=[("f", "g")])
    fit("a -> f; e -> g", scan({**unlike, "f": ["u", "v"] * 9, "g": ["u", "v"] * 9}, variables={"a": ["u", "v", "w"], \
"e": ["u", "v", "w"]}), shared=[("f", "g")])
fit("ill -> smoke", {**some, "ill": [None] * 120}, missing_depends_on={"ill": ["smoke"]})
    em("ill -> smoke; ill -> c", {n: finite[n] for n in ("smoke", "c")}, hidden=[Finite("ill", ["no", "yes"])], max_iter=2)
em(Graph("ill -- smoke"), some, missing_depends_on={"ill": ["smoke"]})
    em("ill -> smoke", some, missing_depends_on={"ill": ["smoke"], "smoke": []})
em("h -> ill; h -> smoke", some, hidden=[Finite("h", ["a", "b"])], missing_depends_on={"ill": ["h"]})
    em("h -> ill; h -> smoke", some, hidden=[Finite("h", ["a", "b"])], missing_depends_on={"ill": ["smoke"], "smoke": []}, \
max_iter=2)
em(Template("ill[-1] -> ill"), seq, first=Stationary(), batches=2)
    em(Template("ill[-1] -> ill"), seq, first=Stationary())
em(Template("level[-1] -> level -> x"), seq, hidden=[Real("level")], first=Diffuse(), max_iter=2).model.sample(2, 5)
    em(Template("level[-1] -> level -> x"), seq, hidden=[Real("level")], first=Free(), max_iter=3).model.sample(2, 5)
chain.forecast(sequences({**steps, "smoke": steps["smoke"]}, by="id", order="t"), 2, given={"id": [0] * 2, "smoke": ["yes"] * 2})
    chain.forecast(seq, 2, given={"smoke": ["yes"] * 2})
scan({"a": ["1", "2"], "b": ["x", "y"]}, variables={"a": Count("a")}, separator=";")
    scan({"a": ["1", "2"], "b": ["x", "y"]}, variables={"a": Count("a")})
fit(flags, {"f": 0.3})
    fit(flags, {"f": 0.3}, objective=MaxEntropy())
fit(flags, {"f": 1.0}, objective=MaxEntropy())
    fit(flags, {"f": 1.0}, objective=MaxEntropy(slack=0.01))
asia.query("smoke", given={"either": "yes", "asia": "yes"}, method=LikelihoodWeighting(2))
    asia.query("smoke", given={"either": "yes", "asia": "yes"}, method=Gibbs())
    asia.query("smoke", given={"either": "yes", "asia": "yes"}, method=LikelihoodWeighting(2000))
search(gather({**finite, **pairs}, max_parents=1), method=Orders(max_parents=2))
    search(gather({**finite, **pairs}, max_parents=1), method=Orders(max_parents=1))
    search(gather({**finite, **pairs}, max_parents=2), method=Orders(max_parents=2))
Neighbourhoods(penalty=-1)
    fit(Graph("x -- z"), numbers)
HeldOut(folds=1)
    HeldOut(folds=5)
restored.query("smoke", interval=0.9)
    em("ill -> smoke", some, start=restored, information=True).model.query("smoke", interval=0.9)
em("h -> ill", finite, hidden=[Finite("h", ["a", "b"])], max_iter=50).model.query("h", interval=0.9)
    em("h -> ill", finite, hidden=[Finite("h", ["a", "b"])], max_iter=50).model.query("h")
fit(Template("s[-1] -> s"), sequences({"id": [1] * 4 + [2] * 4, "s": list("aaaabbbb")}, by="id"), first=Stationary())
    fit(Template("s[-1] -> s"), sequences({"id": [1] * 4 + [2] * 4, "s": list("aaaabbbb")}, by="id"), first=Free())
em(Template("k[-1] -> k"), sequences({**steps, "k": gaps["k"]}, by="id", variables={"k": Count("k")}), max_iter=2)
    em(Template("k[-1] -> k"), sequences({**steps, "k": gaps["k"]}, by="id", variables={"k": Bins(5)}), max_iter=2)
fit(Plate("ill -> smoke", group="c", pooling=Partial()), {**rows, "ill": gaps["ill"]})
    fit(Plate("ill -> smoke", group="c", pooling=Pooled()), {**rows, "ill": gaps["ill"]})
em(Template("ill[-1] -> ill"), seq, prior=LogisticNormal(), first=Stationary())
    em(Template("ill[-1] -> ill"), seq, prior=BDeu(1), first=Stationary())
"""

NOT_TAKEN: dict[str, tuple[str, ...]] = {
    "takes a model or rows too large for a test of all messages; tests of the room draw, or cut, as advised": (
        "incomplete/completions.py: a row lacks",
        "numerics/inference/finite/junction_tree.py: the junction tree",
        "numerics/inference/finite/junction_tree.py: the tables of",
        "numerics/inference/finite/logs.py: a product of",
        "numerics/inference/finite/questions.py: the answer needs",
        "numerics/inference/sampling/gibbs.py: what zeros",
        "learning/undirected/ipf.py: the cliques",
        "models/linear_chain/wider_features.py: … with",
        "models/linear_chain/wider_features.py: …, and",
        "models/questions/answering.py: draw one node",
        "models/questions/sampling.py: zeros in",
        "models/questions/sampling.py: nearly impossible",
        "models/questions/exact.py: an exact answer",
        "models/undirected/factor.py: the junction tree",
        "models/undirected/factor.py: … and … learn",
        "recipes/stepwise.py: all interactions",
    ),
    "comes after so many iterations, or such numbers, that no small table is sure to bring it about": (
        "incomplete/chains/linear_rows.py: … needs numbers",
        "learning/incomplete/coordinates.py: the variance",
        "learning/chains/chain_problem.py: …, as so few",
        "learning/conditional/discriminative.py: Σ log p",
        "learning/em.py: the coefficients",
        "learning/incomplete/objective.py: …… has collapsed",
        "learning/undirected/without_tree.py: L-BFGS did not",
        "learning/undirected/without_tree.py: the weights of … run off to infinity, since … tell it",
        "learning/undirected/likelihood.py: a larger one",
        "learning/undirected/likelihood.py: a penalty, as",
        "learning/undirected/moments.py: only distributions",
        "learning/undirected/moments.py: the moments",
    ),
    "is met by calls inside of the library, or by a wrong use of its parts, where another message comes first for users": (
        "families/hierarchical/hierarchical.py: … learns",
        "families/hierarchical/hierarchical.py: … pools",
        "families/regressions/linear_moments.py: … cannot be fitted",
        "families/regressions/responses.py: : declare it",
        "incomplete/chains/linear_states.py: … is of states",
        "learning/graph_score.py: … is real",
        "learning/chains/stationary.py: … is for tables",
        "models/parts/sharing.py: … has the state",
        "models/questions/exact.py: leave",
    ),
    "advises in words, to leave out, to fill in or to give more, which no line does by itself": (
        "incomplete/chains/chain_states.py: cells of",
        "incomplete/chains/linear_rows.py: …: a sequence shows",
        "incomplete/chains/linear_states.py: …: … begins",
        "learning/chains/chain_problem.py: … of … is fitted",
        "learning/incomplete/mechanism.py: whether … is missing depends on itself",
        "models/chains/chain_forecast.py: … has",
        "models/chains/chain_parts.py: … is of real",
        "models/estimation.py: the parameters",
        "models/questions/exact.py: …, or draw p(given)",
    ),
    "is of families that other packages bring: tests/house/test_plugins.py": (
        "families/categorical.py: … is …",
        "families/categorical.py: the posterior of … has no mode: count and prior of a cell",
    ),
    "is of rows on a cluster: tests/spark": ("engines/sequences/parted.py: say", "engines/sequences/parted.py: without"),
}
"""How messages begin whose way out no line takes, by the reason."""
