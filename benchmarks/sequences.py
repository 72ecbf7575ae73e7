"""Sequences beside hmmlearn, dynamax and statsmodels: EM, best paths, factorial chains, Kalman; threads, one long sequence, the
tagger.

Process time of one thread, from the same start, warm; every program makes the same iterations, and log-likelihoods are compared.
Rounds in which each program runs in turn; the median of each.
"""

from __future__ import annotations

import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import suffice as sf
from timing import SHARED

S, T, K, E, D, ITERATIONS, ROUNDS = 1_000, 1_000, 8, 16, 4, 20, 3


def process_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def rounds(programs: dict[str, Callable[[], Any]]) -> tuple[dict[str, float], dict[str, Any]]:
    """Median process seconds of each program, all in turn, and the result of the last round."""
    times: dict[str, list[float]] = {name: [] for name in programs}
    results: dict[str, Any] = {}
    for _ in range(ROUNDS):
        for name, work in programs.items():
            seconds, results[name] = process_seconds(work)
            times[name].append(seconds)
    return {name: statistics.median(t) for name, t in times.items()}, results


def told(what: str, ours: float, n: float, **peers: tuple[float, float]) -> None:
    """Ours, in nanoseconds a step and iteration, and how many times as long each peer took; with the ratio wanted."""
    others = "".join(
        f"; {name} {t / n * 1e9:,.0f} ns = {t / ours:.1f}x (wanted {want:g}x: {'met' if t / ours >= want else 'MISSED'})"
        for name, (t, want) in peers.items()
    )
    print(f"{what}: {ours / n * 1e9:,.0f} ns a step{others}", flush=True)


def model() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    A = rng.dirichlet(np.ones(K), K) * 0.5 + 0.5 * np.eye(K)
    return np.full(K, 1 / K), A, rng.dirichlet(np.full(E, 0.5), K)


def states_drawn(rng: np.random.Generator, A: Any, n: int, length: int) -> Any:
    s = np.empty((n, length), np.int64)
    s[:, 0] = rng.integers(K, size=n)
    for t in range(1, length):
        s[:, t] = (rng.random(n)[:, None] > np.cumsum(A[s[:, t - 1]], axis=1)[:, :-1]).sum(axis=1)
    return s


def categorical() -> None:
    pi, A, B = model()
    rng = np.random.default_rng(1)
    s = states_drawn(rng, A, S, T)
    y = (rng.random((S, T))[..., None] > np.cumsum(B, axis=1)[s][..., :-1]).sum(axis=2)
    begin = 0.5 * A + 0.5 / K, 0.5 * B + 0.5 / E
    state, symbol = sf.Finite("s", [str(k) for k in range(K)]), sf.Finite("y", [str(e) for e in range(E)])
    rows = {"id": np.repeat(np.arange(S), T), "y": y.reshape(-1)}
    sequences = sf.sequences(rows, by="id", variables={"y": symbol}).hold()
    start = sf.Chain("s[-1] -> s -> y", {"s": begin[0], "s[0]": pi, "y": begin[1]}, [state, symbol])

    def ours(threads: int = 1, data: Any = sequences) -> Any:
        return sf.em(start, data, hidden=[state], start=start, tol=0, max_iter=ITERATIONS, threads=threads)

    def hmmlearn() -> Any:
        from hmmlearn.hmm import CategoricalHMM

        peer = CategoricalHMM(K, init_params="", n_iter=ITERATIONS, tol=-np.inf, implementation="scaling")
        peer.startprob_, peer.transmat_, peer.emissionprob_ = pi, begin[0], begin[1]
        return peer.fit(y.reshape(-1, 1), np.full(S, T))

    programs = {"ours": ours, "hmmlearn": hmmlearn, "dynamax": dynamax_categorical(pi, *begin, y)}
    ours()
    programs["dynamax"]()
    t, found = rounds(programs)
    n = S * T * ITERATIONS
    told(
        f"categorical EM, {S:,} × {T:,} steps, {K} states", t["ours"], n, hmmlearn=(t["hmmlearn"], 9), dynamax=(t["dynamax"], 20)
    )
    mine = np.array([i.log_likelihood for i in found["ours"].trace][:-1])
    theirs = np.array(found["hmmlearn"].monitor_.history)[1 : len(mine) + 1]
    print(f"  log L of each iteration: largest relative difference {np.abs(mine / theirs - 1).max():.1e} (wanted 1e-10)")
    clock, spent, found_by = {}, {}, {}
    for threads in (1, 2):
        times = []
        for _ in range(ROUNDS):
            begun, all_, first = time.perf_counter(), time.process_time(), time.thread_time()
            found_by[threads] = ours(threads).log_likelihood
            times.append((time.perf_counter() - begun, time.process_time() - all_, time.thread_time() - first))
        clock[threads], *spent[threads] = np.median(times, axis=0)
    ratio, same = clock[1] / clock[2], found_by[1] == found_by[2]
    serial = spent[2][1]  # what the first thread does, while the others wait
    alone = spent[1][0] / (serial + (spent[2][0] - serial) / 2)
    print(f"  two threads by the clock: {ratio:.2f}x one (wanted 1.6x), the same bits: {same}")
    print(f"  by processor time, if each had a processor to itself: {alone:.2f}x; {serial / spent[2][0]:.1%} is serial")
    long = sf.sequences({"y": y.reshape(-1)}, variables={"y": symbol}).hold()
    ours(1, long)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    t, _ = rounds({"many": ours, "one": lambda: ours(1, long)})
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(
        f"  one sequence of {S * T:,} steps: {t['one'] / t['many']:.2f} times as long (wanted 1.3); memory grew by {grown:.0f} MB"
    )
    chain = found["ours"].model
    peer = found["hmmlearn"]
    t, found = rounds({"ours": lambda: chain.decode(sequences), "hmmlearn": lambda: peer.decode(y.reshape(-1, 1), np.full(S, T))})
    told("best paths", t["ours"], S * T, hmmlearn=(t["hmmlearn"], 3))
    print(f"  log p {found['ours'].log_prob.sum():.6f}, hmmlearn (its own parameters) {found['hmmlearn'][0]:.6f}")


def memory() -> None:
    """One long sequence of a chain that stays where it is with some probability, beside one that moves on at once: E-steps."""
    from suffice.numerics.inference.chains.finite import expect_states
    from suffice.numerics.inference.chains.steps import StateSteps

    n, first = S * T, 0.0
    for stay in (1 / K, 0.9, 0.99, 0.999, 1.0):
        rng = np.random.default_rng(4)
        B = rng.dirichlet(np.full(E, 5.0), K)  # states that look much the same, or what is seen would tell where the chain is
        s = np.cumsum(np.where(rng.random(n) > stay, rng.integers(1, K, n), 0)) % K
        y = (rng.random(n)[:, None] > np.cumsum(B, axis=1)[s][:, :-1]).sum(axis=1)
        A = np.full((K, K), (1.0 - stay) / (K - 1))
        np.fill_diagonal(A, stay)
        matrices = np.stack([np.full((K, K), 1 / K), A])
        codes = np.concatenate([[0], np.ones(n - 1, np.int32)])
        steps = StateSteps(np.array([0, n]), codes, matrices, symbols=y, table=np.ascontiguousarray(B.T))
        expect_states(steps)
        t, _ = rounds({"ours": partial(expect_states, steps)})
        first = first or t["ours"]
        told(f"one sequence of {n:,} steps, p(stay) = {stay:g}, {t['ours'] / first:.1f} times as long", t["ours"], n)


def dynamax_categorical(pi: Any, A: Any, B: Any, y: Any) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp
    from dynamax.hidden_markov_model import CategoricalHMM

    jax.config.update("jax_enable_x64", True)
    hmm = CategoricalHMM(K, 1, E, emission_prior_concentration=1.0, transition_matrix_concentration=1.0)
    parameters, properties = hmm.initialize(
        jax.random.PRNGKey(0), initial_probs=jnp.array(pi), transition_matrix=jnp.array(A), emission_probs=jnp.array(B)[:, None]
    )
    batch = jnp.array(y)[..., None]
    return lambda: jax.block_until_ready(hmm.fit_em(parameters, properties, batch, num_iters=ITERATIONS, verbose=False))


def gaussian() -> None:
    rng = np.random.default_rng(2)
    pi, A, _ = model()
    n = S // 2
    s = states_drawn(rng, A, n, T)
    means = rng.normal(0.0, 2.0, (K, D))
    roots = np.eye(D) + 0.3 * rng.normal(size=(K, D, D))
    y = means[s] + np.einsum("stij,stj->sti", roots[s], rng.normal(size=(n, T, D)))
    begin = means + rng.normal(0.0, 0.3, means.shape)
    names = [f"y{d}" for d in range(D)]
    rows = {"id": np.repeat(np.arange(n), T), **{name: y[:, :, d].reshape(-1) for d, name in enumerate(names)}}
    sequences = sf.sequences(rows, by="id").hold()
    start = (pi, A, begin, np.tile(2.0 * np.eye(D), (K, 1, 1)))
    lines = {
        name: sf.Gaussian(begin[:, d], dict.fromkeys(names[:d], np.zeros(K)), np.full(K, 2.0)) for d, name in enumerate(names)
    }
    graph = {"state": [sf.chains.lag("state")], **{name: ["state", *names[:d]] for d, name in enumerate(names)}}
    chain = sf.Chain(graph, {"state": A, "state[0]": pi, **lines}, [sf.Finite("state", [str(k) for k in range(K)])])

    def ours() -> Any:
        return sf.hmm(sequences, K, start=chain, tol=0, max_iter=ITERATIONS, threads=1)

    def hmmlearn() -> Any:
        from hmmlearn.hmm import GaussianHMM

        peer = GaussianHMM(
            K, "full", init_params="", n_iter=ITERATIONS, tol=-np.inf, implementation="scaling", covars_prior=0.0, min_covar=0.0,
            covars_weight=0.0,
        )  # fmt: skip
        peer.startprob_, peer.transmat_, peer.means_, peer.covars_ = (np.array(part) for part in start)
        return peer.fit(y.reshape(-1, D), np.full(n, T))

    programs = {"ours": ours, "hmmlearn": hmmlearn, "dynamax": dynamax_gaussian(start, y)}
    ours()
    programs["dynamax"]()
    t, found = rounds(programs)
    wanted = {"hmmlearn": (t["hmmlearn"], 12), "dynamax": (t["dynamax"], 6)}
    told(f"Gaussian EM, {D}-d, full, {n:,} × {T:,} steps", t["ours"], n * T * ITERATIONS, **wanted)
    mine = np.array([i.log_likelihood for i in found["ours"].trace][:-1])
    theirs = np.array(found["hmmlearn"].monitor_.history)[1 : len(mine) + 1]
    print(f"  log L of each iteration: largest relative difference {np.abs(mine / theirs - 1).max():.1e}")


def dynamax_gaussian(start: Any, y: Any) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp
    from dynamax.hidden_markov_model import GaussianHMM

    pi, A, means, covariances = start
    hmm = GaussianHMM(K, D)
    parameters, properties = hmm.initialize(
        jax.random.PRNGKey(0), initial_probs=jnp.array(pi), transition_matrix=jnp.array(A),
        emission_means=jnp.array(means), emission_covariances=jnp.array(covariances),
    )  # fmt: skip
    batch = jnp.array(y)
    return lambda: jax.block_until_ready(hmm.fit_em(parameters, properties, batch, num_iters=ITERATIONS, verbose=False))


def kalman() -> None:
    import jax
    import jax.numpy as jnp
    from dynamax.linear_gaussian_ssm import LinearGaussianSSM
    from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

    from suffice.numerics.inference.chains.linear.gaussian import LinearSteps, expected_states

    rng, n, m, p = np.random.default_rng(3), 128, 4, 4
    F = 0.9 * np.linalg.qr(rng.normal(size=(m, m)))[0]
    Q, H, R = np.eye(m) * 0.3, rng.normal(size=(p, m)), np.full(p, 0.5)
    y = rng.normal(size=(n, T, p)) * 2.0
    codes = np.tile(np.concatenate([[0], np.ones(T - 1, np.int32)]), n).astype(np.int32)
    steps = LinearSteps(
        np.arange(n + 1) * T, codes, np.stack([np.zeros((m, m)), F]), np.stack([np.eye(m), Q]), np.zeros((2, m)),
        y.reshape(-1, p), H[None], R[None],
    )  # fmt: skip
    groups = np.zeros(n * T, np.int32)

    in_a_row = 8  # E-steps, as EM makes them: one alone takes a few milliseconds, as memory that is new to the process does

    def ours() -> Any:
        for _ in range(in_a_row):
            found = expected_states(steps, groups, 1)
        return found

    def statsmodels() -> Any:
        total = 0.0
        for sequence in y[:8]:  # one that is bound to another sequence gives another likelihood
            smoother = KalmanSmoother(p, m)
            smoother["design"], smoother["obs_cov"], smoother["transition"] = H, np.diag(R), F
            smoother["selection"], smoother["state_cov"] = np.eye(m), Q
            smoother.bind(np.ascontiguousarray(sequence))
            smoother.initialize_known(np.zeros(m), np.eye(m))
            total += smoother.smooth().llf
        return total

    jax.config.update("jax_enable_x64", True)
    ssm = LinearGaussianSSM(m, p)
    parameters, _ = ssm.initialize(
        jax.random.PRNGKey(0), initial_mean=jnp.zeros(m), initial_covariance=jnp.eye(m), dynamics_weights=jnp.array(F),
        dynamics_covariance=jnp.array(Q), dynamics_bias=jnp.zeros(m), emission_weights=jnp.array(H),
        emission_covariance=jnp.diag(jnp.array(R)), emission_bias=jnp.zeros(p),
    )  # fmt: skip
    batch = jnp.array(y)
    run = jax.jit(jax.vmap(lambda x: ssm.e_step(parameters, x)))

    def dynamax() -> Any:
        for _ in range(in_a_row):
            found = jax.block_until_ready(run(batch))
        return found

    for work in (ours, dynamax, statsmodels):
        work()
    t, found = rounds({"ours": ours, "statsmodels": statsmodels, "dynamax": dynamax})
    scaled = t["statsmodels"] * n / 8 * in_a_row
    told(
        f"Kalman E-step, {m} states, {p} outputs, {n} × {T:,}",
        t["ours"],
        n * T * in_a_row,
        statsmodels=(scaled, 80),
        dynamax=(t["dynamax"], 6),
    )
    mine = found["ours"].log_likelihoods
    theirs = np.asarray(found["dynamax"][1]).sum()
    print(
        f"  log L of 8: ours {mine[:8].sum():.8f}, statsmodels {found['statsmodels']:.8f}; of all: {mine.sum():.6f}, {theirs:.6f}"
    )


def factorial(chains: int = 5, k: int = 4, n: int = 64, length: int = 25) -> None:
    """One E-step of several hidden chains that show one symbol: factor by factor, as one joint state, and by hmmlearn as an HMM
    of k^chains states."""
    from functools import reduce

    from suffice.incomplete.chains import factored_rows
    from suffice.learning.chains.chain_problem import chain_problem_of

    rng, names = np.random.default_rng(0), [f"h{i}" for i in range(chains)]
    hidden, symbol = [sf.Finite(name, [str(i) for i in range(k)]) for name in names], sf.Finite("y", [str(e) for e in range(E)])
    A = [0.3 * rng.dirichlet(np.ones(k), k) + 0.7 * np.eye(k) for _ in names]
    B = rng.dirichlet(np.full(E, 0.3), (k,) * chains)
    cpds = {**dict(zip(names, A, strict=True)), **{f"{name}[0]": np.full(k, 1 / k) for name in names}, "y": B}
    chain = sf.Chain("; ".join(f"{name}[-1] -> {name} -> y" for name in names), cpds, [*hidden, symbol])
    rows = chain.sample(n, length=length, seed=1)
    sequences = sf.sequences(rows.select(["sequence", "y"]), by="sequence", variables={"y": symbol}).hold()
    usual = factored_rows.FIXED

    def e_step(fixed: int) -> Callable[[], Any]:
        factored_rows.FIXED = fixed  # which way is taken hangs on it
        problem = chain_problem_of(chain.template, sequences, hidden=hidden, threads=1)
        theta = problem.parameters({name: chain[name] for name in chain})
        factored_rows.FIXED = usual
        return lambda: problem.expect(theta).log_likelihood

    def hmmlearn() -> Any:
        from hmmlearn.hmm import CategoricalHMM

        peer = CategoricalHMM(k**chains, init_params="", n_iter=1, tol=-np.inf, implementation="scaling")
        peer.startprob_, peer.transmat_ = np.full(k**chains, float(k) ** -chains), reduce(np.kron, A)
        peer.emissionprob_ = B.reshape(-1, E)
        y = np.array(rows["y"].to_pylist(), np.int64)
        return peer.fit(y[:, None], np.full(n, length)).monitor_.history[0]

    programs = {"ours": e_step(usual), "joint": e_step(2**62), "hmmlearn": hmmlearn}
    programs["ours"](), programs["joint"]()
    t, found = rounds(programs)
    what = f"factorial, {chains} chains of {k} states, one E-step of {n} × {length} steps"
    told(what, t["ours"], n * length, joint=(t["joint"], 1), hmmlearn=(t["hmmlearn"], 1))
    apart = max(abs(found["ours"] / found[name] - 1) for name in programs)
    print(f"  log L: largest relative difference {apart:.1e} (wanted 1e-10)")


TAGGER = """
import sys, time
import numpy as np, suffice as sf
start = time.perf_counter()
folder = sys.argv[1]
names = ["word", "upos", "xpos"]
train = sf.labels.read_conll(f"{folder}/en_ewt-train.tsv.gz", columns=names).select(["sentence", "word", "upos"])
test = sf.labels.read_conll(f"{folder}/en_ewt-test.tsv.gz", columns=names)
words = train["word"].unique().to_pylist()
known = set(words)
word = sf.Finite("word", [*sorted(words), "<unseen>"])
chain = sf.fit("upos[-1] -> upos -> word", sf.sequences(train, by="sentence", variables={"word": word}), prior=sf.Dirichlet(1))
cells = [w if w in known else "<unseen>" for w in test["word"].to_pylist()]
found = chain.decode(sf.sequences({"sentence": test["sentence"], "word": cells}, by="sentence"))
right = int((np.array(found["upos"]) == np.array(test["upos"].to_pylist())).sum())
print(f"{time.perf_counter() - start} {right}")
"""


def tagger() -> None:
    """In a process of its own, kernels compiled before; from the import on."""
    folder = SHARED / "sequences"
    if not folder.is_dir():
        print("tagger: no ../shared/data/sequences here")
        return
    times = []
    for _ in range(ROUNDS + 1):
        out = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", TAGGER, str(folder)], check=True, capture_output=True, text=True
        )
        seconds, right = out.stdout.split()
        times.append(float(seconds))
    median = statistics.median(times[1:])
    met = "met" if median <= 2 else "MISSED"
    print(f"tagger, 17 tags × 20,000 words, files to tags: {median:.2f} s (wanted 2 s: {met}); {right} of 25,094 right")


if __name__ == "__main__":
    for part in (categorical, memory, gaussian, factorial, kalman, tagger):
        if len(sys.argv) == 1 or part.__name__ in sys.argv[1:]:
            part()
