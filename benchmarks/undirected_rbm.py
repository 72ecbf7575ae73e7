"""Models without a junction tree: restricted Boltzmann machines beside scikit-learn's, ln Z by annealing beside its sum, and
pseudo-likelihood and contrastive divergence on an Ising grid of 100 × 100.

Times are CPU seconds of the process, one thread of linear algebra, medians of runs that take turns with the peer's. An epoch of
ours has the pseudo-likelihood of its trace in it; scikit-learn's is without, as by default. Rows are 784 bits from ten causes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import suffice as sf
from suffice.numerics.inference.sampling.blankets import Blankets
from timing import line

N_ROWS, N_VISIBLE, N_HIDDEN, EPOCHS, REPEATS = 5_000, 784, 256, 3, 3
SIDE, N_CONFIGURATIONS = 100, 1_000


def cpu(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def bits() -> Any:
    """Rows of bits that ten hidden causes make."""
    rng = np.random.default_rng(0)
    causes, loads = rng.random((N_ROWS, 10)) < 0.3, 2.0 * rng.normal(size=(10, N_VISIBLE))
    return rng.random((N_ROWS, N_VISIBLE)) < 1.0 / (1.0 + np.exp(2.0 - causes @ loads))


def machines(x: Any) -> None:
    """An epoch of 784 × 256, CD and PCD, beside scikit-learn's PCD: as it is used (doubles), and fed floats."""
    from sklearn.neural_network import BernoulliRBM

    data = sf.scan({f"x{i}": x[:, i] for i in range(N_VISIBLE)})
    sf.undirected.rbm(data, 2, epochs=1)
    doubles, floats = x.astype(np.float64), x.astype(np.float32)
    for batch in (100, 10):
        times: dict[str, list[float]] = {}
        for _ in range(REPEATS):
            for persistent in (False, True):
                goal = sf.ContrastiveDivergence(1, persistent, chains=batch)
                name = "PCD-1" if persistent else "CD-1"
                own = cpu(lambda g=goal, b=batch: sf.undirected.rbm(data, N_HIDDEN, objective=g, batch=b, epochs=EPOCHS))  # type: ignore[misc]
                times.setdefault(name, []).append(own)
            for name, rows in (("sklearn", doubles), ("sklearn float32", floats)):
                peer = BernoulliRBM(N_HIDDEN, batch_size=batch, n_iter=EPOCHS, random_state=0)
                times.setdefault(name, []).append(cpu(lambda p=peer, r=rows: p.fit(r)))  # type: ignore[misc]
        each = {name: statistics.median(own) / EPOCHS for name, own in times.items()}
        peers = {"sklearn": each["sklearn"], "sklearn_float32": each["sklearn float32"]}
        for name in ("CD-1", "PCD-1"):
            line(f"RBM {N_VISIBLE}x{N_HIDDEN}, epoch of {N_ROWS:,} rows, {name}, minibatch {batch}", each[name], **peers)


def normalisers(x: Any) -> None:
    """ln Z of machines of 784 × 16 by annealing, in its standard errors from the sum over all hidden states."""
    data = sf.scan({f"x{i}": x[:, i] for i in range(N_VISIBLE)})
    learned = sf.undirected.rbm(data, 16, epochs=10).model
    goal = sf.ContrastiveDivergence(1, persistent=True)
    chained = {
        f"learned by PCD, seed {s}": sf.undirected.rbm(data, 16, objective=goal, epochs=20, seed=s).model for s in range(20, 24)
    }
    rng = np.random.default_rng(1)
    shapes = (N_VISIBLE, 16), (N_VISIBLE,), (16,)
    drawn = sf.undirected.RBM(learned.variables, *(0.3 * rng.normal(size=s) for s in shapes))
    for name, machine in (("learned by CD", learned), *chained.items(), ("drawn", drawn)):
        start = time.process_time()
        exact = machine.log_normaliser().value
        summed = time.process_time() - start
        for method, seed in ((m, s) for m in (sf.methods.AIS(), sf.methods.AIS(500, 4000)) for s in range(2)):
            start = time.process_time()
            value, error = machine.log_normaliser(method, seed=seed)
            away = (value - exact) / error
            words = f"sum {exact:.4f} ({summed:.2f} s), {method} {value:.4f} ± {error:.4f} ({time.process_time() - start:.2f} s)"
            print(f"ln Z of 784x16, {name}: {words}: {away:+.2f} standard errors {'' if abs(away) < 3 else 'MISSED'}", flush=True)
    large = sf.undirected.rbm(data, N_HIDDEN, epochs=5).model
    start = time.process_time()
    value, error = large.log_normaliser(sf.methods.AIS())
    print(f"ln Z of 784x256, learned: AIS {value:.3f} ± {error:.3f} ({time.process_time() - start:.2f} s)", flush=True)


def grid() -> None:
    """1,000 configurations of 100 × 100 spins, couplings .2 and .35, by Gibbs sampling; what each objective makes of them."""
    n = SIDE * SIDE
    names = [f"s{i:05d}" for i in range(n)]
    edges = [(i, i + 1) for i in range(n) if (i + 1) % SIDE] + [(i, i + SIDE) for i in range(n - SIDE)]
    rng = np.random.default_rng(1)
    truth, spins = rng.choice([0.2, 0.35], len(edges)), np.outer([-1.0, 1.0], [-1.0, 1.0]).ravel()
    blankets, columns = Blankets.of([2] * n, edges), rng.integers(0, 2, (n, N_CONFIGURATIONS)).astype(np.uint16)
    for t in range(100):
        blankets.sweep(columns, np.outer(truth, spins).ravel(), 0, t)
    data = sf.scan({name: columns[i].astype(bool) for i, name in enumerate(names)})
    pairs = [(names[a], names[b]) for a, b in edges]
    model = sf.Ising(sf.Graph(pairs))
    print(f"scan of {n:,} columns: {cpu(lambda: data.known):.2f} s", flush=True)
    goals = (sf.PseudoLikelihood(), sf.ContrastiveDivergence(1, persistent=True), sf.ContrastiveDivergence(1))
    for goal in goals:
        found: list[Any] = []
        seconds = cpu(lambda g=goal, f=found: f.append(sf.fit(model, data, objective=g)))  # type: ignore[misc]
        own = found[0].couplings
        off = np.array([own[p] for p in pairs]) - truth
        words = f"couplings off by {np.sqrt(np.mean(off**2)):.4f} (root mean square), {off.mean():+.4f} on average"
        print(f"Ising {SIDE}x{SIDE}, {N_CONFIGURATIONS:,} rows, {goal!r}: {seconds:.2f} s; {words}", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        rows = bits()
        machines(rows)
        normalisers(rows)
    grid()
