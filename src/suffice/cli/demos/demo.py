"""The demonstration: a known network, rows drawn from it, and what Suffice learns back: the numbers, then the graph as well."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from suffice.basis.libraries import pa
from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.engines.steps.blocks import n_threads
from suffice.families.gathering.gathering import gather
from suffice.families.priors.priors import BDeu
from suffice.formats import load
from suffice.graphs import compare
from suffice.kernels import ESSENTIAL, warm
from suffice.learning.em import em
from suffice.learning.fit import fit
from suffice.learning.graph_score import score
from suffice.models.divergence import kl
from suffice.models.networks import BayesNet
from suffice.output.display import text_table
from suffice.recipes.missing.missingness import missingness
from suffice.scores import BIC
from suffice.structure.search import search
from suffice.variables import Finite

NEXT = """What to try next, on a table of your own (CSV or Parquet, a row per line, the names of the columns first):

    suffice learn rows.csv -o network.json       the graph and its numbers
    suffice show network.json                    what was learned
    suffice query network.json "P(x | y=some)"   a question, x and y being columns"""

Working = Callable[[str], AbstractContextManager[None]]


def run(n: int, seed: int, working: Working) -> None:
    """Print the story."""
    truth = load("alarm")
    print(f"ALARM watches patients: {len(truth)} variables, {len(truth.dag.edges)} edges, {truth.n_parameters} parameters.")
    print(f"Draw {n:,} rows from it, forget the numbers, learn them back from the rows.\n")
    with working("getting ready"):
        warm(processes=n_threads(), only=ESSENTIAL)
        gather(truth.sample(10, seed=seed), truth.dag)
    rows = truth.sample(n, seed=seed)
    data = scan(rows)
    statistics = gather(data, truth.dag)  # 37 tables in one scan
    bn = fit(truth.dag, statistics, prior=BDeu(1))
    print(bn["VENTLUNG"], "\n")
    _intervals(truth, bn, "HYPOVOLEMIA")
    unsupported = sum(int(bn[x].unsupported.sum()) for x in bn)
    print(f"KL(truth || fitted) = {kl(truth, bn):.5f} nats per row; BIC of the graph {score(truth.dag, statistics, BIC()):,.2f}.")
    print(f"{unsupported} configurations of parents never occurred; bn[node].unsupported says which.\n")
    _ask(truth, bn)
    _gaps(truth, rows, seed)
    _graph(truth, data, working)
    print(NEXT)


def _gaps(truth: BayesNet, rows: Any, seed: int) -> None:
    """Lose cells at random, hide a variable, and learn the numbers all the same."""
    rng, columns = np.random.default_rng(seed), {}
    for name in rows.column_names:
        cells = rows[name].combine_chunks()
        codes = pa.array(cells.indices.to_numpy(), mask=rng.random(len(cells)) < 0.1)
        columns[name] = pa.DictionaryArray.from_arrays(codes, cells.dictionary)
    hidden = truth.variables["LVEDVOLUME"]
    assert isinstance(hidden, Finite)
    del columns["LVEDVOLUME"]
    print("Lose a tenth of the cells, hide LVEDVOLUME, which no row shows any more, and learn the numbers by EM.\n")
    data = scan(columns, variables={n: v for n, v in truth.variables.items() if n in columns})
    run = em(truth.dag, data, hidden=[hidden], prior=BDeu(1), starts=3)
    whole = missingness(data).complete
    print(f"{run.model.fit_info}.")
    print(f"The best of three starts took {run.n_iterations:,} iterations; only {whole:,.0f} rows had all other cells.\n")


def _ask(truth: BayesNet, bn: BayesNet) -> None:
    """A question, with what the rows leave open about its answer, and all marginals."""
    seen = {"CVP": "HIGH", "HRBP": "HIGH"}
    print("Ask the fitted network: what if the central venous pressure and the heart rate are high?\n")
    print(bn.query("LVFAILURE", given=seen, interval=0.95))
    print(f"In truth p(LVFAILURE=TRUE | ...) is {truth.marginals(seen)['LVFAILURE']['TRUE']:.4f}.")
    likely = bn.marginals(seen)["HYPOVOLEMIA"]["TRUE"]
    print(f"All 37 marginals given these come from one junction tree; p(HYPOVOLEMIA=TRUE | ...) is {likely:.4f} among them.\n")


def _graph(truth: BayesNet, data: Data, working: Working) -> None:
    """Forget the graph, too, and learn it back."""
    print("Now forget the graph as well, and search for the one that the rows support best.\n")
    with working("searching"):
        found = search(data)
    compared = compare(truth.dag, found.dag)
    print(found.summary())
    print(f"BIC of the true graph {score(truth.dag, data, BIC()):,.3f}; the distance of the two classes (SHD) is {compared.shd}.")
    for word, edges in (("not found", compared.missing), ("too many", compared.extra)):
        if edges:
            print(f"{word}: {', '.join(f'{a} -> {b}' for a, b in edges)}")
    print(f"KL(truth || learned) = {kl(truth, fit(found.dag, data, prior=BDeu(1))):.5f} nats per row.\n")
    for edge in (*compared.missing[:1], ("VENTLUNG", "EXPCO2")):
        print(found.explain(edge), "\n")


def _intervals(truth: BayesNet, bn: BayesNet, node: str) -> None:
    """One root's probabilities beside the true ones, with what the data leaves open."""
    lower, upper = bn[node].interval(0.95)
    known = truth[node]
    cells = zip(bn[node].child.states, bn[node].probs, lower, upper, strict=True)
    rows = [[s, float(known.probs[known.child.code(s)]), *map(float, rest)] for s, *rest in cells]
    print(text_table([node, "truth", "fitted", "95 % from", "to"], rows), "\n")
