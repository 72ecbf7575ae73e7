"""The learning curve of ALARM: mean KL(truth || fit) against the number of rows, for BDeu priors and for maximum likelihood.

Maximum likelihood has an infinite divergence as soon as a possible cell has no count; floored at 1e-3/N it is comparable.
"""

from __future__ import annotations

import numpy as np

import suffice as sf

ROWS, REPEATS, SIZES = (100, 300, 1000, 3000, 10_000, 30_000), 10, (5, 10, 20, 50)


def floored(bn: sf.BayesNet, floor: float) -> sf.BayesNet:
    tables = {n: np.maximum(bn[n].probs, floor) for n in bn}
    return sf.BayesNet(bn.dag, {n: t / t.sum(-1, keepdims=True) for n, t in tables.items()}, bn.variables)


def main() -> None:
    truth = sf.load("alarm")
    print("rows    " + "  ".join(f"BDeu({s})".rjust(9) for s in SIZES) + "   MLE floored   MLE infinite in")
    previous = np.full(len(SIZES), np.inf)
    for n in ROWS:
        divergence, floors, infinite = np.zeros(len(SIZES)), 0.0, 0
        for seed in range(REPEATS):
            statistics = sf.gather(sf.scan(truth.sample(n, seed=seed), variables=truth.variables), truth.dag)
            divergence += [sf.information.kl(truth, sf.fit(truth.dag, statistics, prior=sf.BDeu(s))) / REPEATS for s in SIZES]
            mle = sf.fit(truth.dag, statistics)
            infinite += np.isinf(sf.information.kl(truth, mle))
            floors += sf.information.kl(truth, floored(mle, 1e-3 / n)) / REPEATS
        falls = bool(np.all(divergence < previous))
        previous = divergence
        curve = "  ".join(f"{d:9.4f}" for d in divergence)
        print(f"{n:<7} {curve}   {floors:11.4f}   {infinite}/{REPEATS}   falls: {falls}")


if __name__ == "__main__":
    main()
