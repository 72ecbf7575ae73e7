"""Fitting linear Gaussians: ARTH150 (107 nodes) from 1,000,000 rows, and beside pgmpy on 20,000 of them."""

from __future__ import annotations

import suffice as sf
from timing import SHARED, line, seconds


def main() -> None:
    from pgmpy.models import LinearGaussianBayesianNetwork

    bn = sf.read(SHARED / "networks" / "arth150.json")
    data = sf.scan(bn.sample(1_000_000, seed=0))
    data.schema  # noqa: B018
    line("ARTH150, 1,000,000 rows: fit 107 Gaussians", seconds(lambda: sf.fit(bn.dag, data), 3))
    few = bn.sample(20_000, seed=0).to_pandas()
    small = sf.scan(few)
    small.schema  # noqa: B018
    theirs = LinearGaussianBayesianNetwork(list(bn.dag.edges))
    theirs.add_nodes_from(bn.dag.nodes)
    pgmpy = seconds(lambda: theirs.fit(few), 1, warm=0)
    line("ARTH150, 20,000 rows: fit 107 Gaussians", seconds(lambda: sf.fit(bn.dag, small), 5), pgmpy=pgmpy)
    ours = sf.fit(bn.dag, small)
    off = max(abs(float(c.beta[0]) - float(ours[c.variable].intercept)) for c in theirs.cpds)
    print(f"largest difference of an intercept: {off:.2g}")


if __name__ == "__main__":
    main()
