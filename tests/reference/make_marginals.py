"""Makes the files of marginals that tests compare with, by pyAgrum from exactly our tables. Run by hand, with pyAgrum installed.

`pyagrum_marginals.json` beside it has every marginal of the bundled networks; the file of the same name in `tests/shared` has
some marginals of the networks in ../shared, without those that pyAgrum does not manage here (link). Observed are cells of rows
drawn from the network.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

import suffice as sf

HERE = Path(__file__).parent
NETWORKS = HERE.parents[2] / "shared" / "data" / "networks"
N_SETS, DIGITS = 3, 13


def observations(bn: sf.BayesNet, n_observed: int, rng: np.random.Generator) -> dict[str, str]:
    row = bn.sample(1, seed=int(rng.integers(1000)))
    return {n: row[n][0].as_py() for n in rng.permutation(list(bn))[:n_observed].tolist()}


def answers(bn: sf.BayesNet, n_observed: int, n_nodes: int) -> list[dict[str, Any]]:
    """What is given, ln p(given) and marginals of at most `n_nodes` nodes, all to 13 digits after the point."""
    import pyagrum as gum

    from inference_peers import pyagrum_network

    rng = np.random.default_rng(4)
    engine, number, result = gum.LazyPropagation(pyagrum_network(bn)), {n: i for i, n in enumerate(bn)}, []
    engine.setNumberOfThreads(1)
    for _ in range(N_SETS):
        given = observations(bn, n_observed, rng)
        engine.setEvidence({number[n]: bn.variables[n].code(s) for n, s in given.items()})
        engine.makeInference()
        nodes = [n for n in bn if n in set(rng.permutation(list(bn))[:n_nodes])]
        marginals = {n: [round(p, DIGITS) for p in engine.posterior(number[n]).tolist()] for n in nodes}
        result.append({"given": given, "log_prob": round(math.log(engine.evidenceProbability()), DIGITS), "marginals": marginals})
    return result


def write(path: Path, networks: dict[str, Any]) -> None:
    import pyagrum as gum

    entries = ",\n".join(
        f'"{name}": [\n' + ",\n".join(json.dumps(s, ensure_ascii=False) for s in sets) + "\n]" for name, sets in networks.items()
    )
    path.write_text(f'{{"pyagrum": "{gum.__version__}",\n{entries}\n}}\n', encoding="utf-8")


def main() -> None:
    small = {n: sf.load(n) for n in ("alarm", "asia", "cancer", "earthquake", "hailfinder", "insurance", "sachs", "survey")}
    write(HERE / "pyagrum_marginals.json", {n: answers(bn, min(5, len(bn) // 3), len(bn)) for n, bn in small.items()})
    large = ["diabetes", "mildew", "munin", "munin1", "munin2", "munin3", "munin4", "pathfinder", "pigs"]
    networks = {n: sf.read(NETWORKS / f"{n}.bif.gz") for n in large}
    write(HERE.parent / "shared" / "pyagrum_marginals.json", {n: answers(bn, 10, 12) for n, bn in networks.items()})


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))
    main()
