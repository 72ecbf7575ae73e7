"""pyAgrum and pgmpy, given exactly our tables, each run in a process of its own with limits of time and memory."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

import suffice as sf

TIME, MEMORY = 120.0, 12 * 2**30
"""Seconds and bytes that a peer gets for one network, from when its network is built."""

Codes = Mapping[int, int]
"""Observations: the code of some variables, both by number in the order of the network."""


class Answer(NamedTuple):
    seconds: float
    values: Any  # what was asked for, or the time alone


class Outcome(NamedTuple):
    answers: list[Answer]
    stopped: str  # "" when it answered everything

    @property
    def seconds(self) -> float:
        """The median time of an answer; NaN where there is none."""
        return float(np.median([a.seconds for a in self.answers])) if self.answers else float("nan")


def limited(peer: Callable[[], Iterator[Answer | None]], limit: float = TIME) -> Outcome:
    """What a generator yields in a forked process; its first None says that loading, which is not limited, is done."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_serve, args=(theirs, peer))
    child.start()
    theirs.close()
    answers, stopped, end = [], "", None
    while True:
        if not ours.poll(None if end is None else max(0.0, end - time.monotonic())):
            stopped = f"stopped after {limit:g} s"
            break
        try:
            message = ours.recv()
        except EOFError:  # it ended, or the system killed it
            child.join()
            stopped = "" if child.exitcode == 0 else "out of memory"
            break
        if isinstance(message, str):
            stopped = message
            break
        if message is None:
            end = time.monotonic() + limit
        else:
            answers.append(message)
    if child.is_alive():
        os.killpg(child.pid, signal.SIGKILL)
    child.join()
    return Outcome(answers, stopped)


def _serve(results: Connection, peer: Callable[[], Iterator[Answer | None]]) -> None:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        for answer in peer():
            results.send(answer)
    except MemoryError:
        results.send("out of memory")
    except Exception as error:  # pyAgrum has errors of its own for memory
        results.send("out of memory" if "alloc" in str(error) or "memory" in str(error).lower() else f"failed: {error}")


def pyagrum_network(bn: sf.BayesNet) -> Any:
    """The same network with the nodes and states numbered, and exactly the same tables."""
    import pyagrum as gum

    number = {name: i for i, name in enumerate(bn)}
    net = gum.BayesNet()
    for name, i in number.items():
        net.add(gum.LabelizedVariable(f"v{i}", "", bn.variables[name].n_states))
    for name, i in number.items():
        for parent in bn[name].parents:
            net.addArc(number[parent], i)
    for name, i in number.items():
        scope = [f"v{number[p]}" for p in (*bn[name].parents, name)]
        cpt = net.cpt(i)
        # its first variable changes fastest
        cpt.fillWith(np.transpose(bn[name].probs, [scope.index(v) for v in cpt.names]).reshape(-1, order="F").tolist())
    return net


def pyagrum_marginals(bn: sf.BayesNet, evidence: list[Codes], threads: int = 1) -> Iterator[Answer | None]:
    """All marginals for each set of observations, timed without turning them into arrays; a first unmeasured answer warms."""
    import pyagrum as gum

    engine = gum.LazyPropagation(pyagrum_network(bn))
    engine.setNumberOfThreads(threads)
    yield None
    for k, observed in enumerate([evidence[0], *evidence]):
        start = time.perf_counter()
        engine.setEvidence(observed)
        engine.makeInference()
        posteriors = [engine.posterior(i) for i in range(len(bn))]
        took = time.perf_counter() - start
        if k:
            yield Answer(took, np.concatenate([p.toarray() for p in posteriors]))


def pyagrum_first(bn: sf.BayesNet, evidence: list[Codes]) -> Iterator[Answer | None]:
    """The seconds of processor time of each question of an engine that is made for the first."""
    import pyagrum as gum

    net = pyagrum_network(bn)
    warm = gum.LazyPropagation(gum.fastBN("a->b"))
    warm.makeInference()
    yield None
    start, engine = time.process_time(), None
    for observed in evidence:
        engine = engine or gum.LazyPropagation(net)
        engine.setNumberOfThreads(1)
        engine.setEvidence(observed)
        engine.makeInference()
        values = [engine.posterior(i) for i in range(len(bn))]
        yield Answer(time.process_time() - start, len(values))
        start = time.process_time()


def pyagrum_rows(bn: sf.BayesNet, codes: Any, target: int, *, same: bool) -> Iterator[Answer | None]:
    """One answer, the posterior of the target in each row, in the way that was fastest of those tried.

    Where the `same` cells are observed in all rows its junction tree is kept and only told what changed since the row before;
    otherwise its variable elimination is a little faster than LazyPropagation.
    """
    import pyagrum as gum

    net = pyagrum_network(bn)
    engine = gum.LazyPropagation(net) if same else gum.VariableElimination(net)
    engine.setNumberOfThreads(1)
    engine.setTargets({target})
    lines = [{i: code for i, code in enumerate(row) if code >= 0} for row in codes.tolist()]
    engine.setEvidence(lines[0])
    engine.makeInference()
    yield None
    before, result = lines[0], []
    start = time.perf_counter()
    for observed in lines:
        if same:
            for i, code in observed.items():
                if before[i] != code:
                    engine.chgEvidence(i, code)
            before = observed
        else:
            engine.setEvidence(observed)
        engine.makeInference()
        result.append(engine.posterior(target).tolist())
    yield Answer(time.perf_counter() - start, np.array(result))


def pgmpy_marginals(bn: sf.BayesNet, evidence: list[Codes]) -> Iterator[Answer | None]:
    """All marginals by its variable elimination, which is asked for one unobserved variable after the other."""
    import logging

    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.inference import VariableElimination
    from pgmpy.models import DiscreteBayesianNetwork

    logging.disable()
    sizes = {n: bn.variables[n].n_states for n in bn}
    names = list(bn)
    net = DiscreteBayesianNetwork([(p, n) for n in bn for p in bn[n].parents])
    net.add_nodes_from(names)
    for n in bn:
        parents = bn[n].parents
        net.add_cpds(TabularCPD(n, sizes[n], bn[n].probs.reshape(-1, sizes[n]).T, parents, [sizes[p] for p in parents]))
    engine = VariableElimination(net)
    yield None
    for observed in evidence:
        known = {names[i]: code for i, code in observed.items()}
        start = time.perf_counter()
        answers = {n: engine.query([n], known, show_progress=False).values for n in names if n not in known}
        took = time.perf_counter() - start
        yield Answer(took, np.concatenate([np.eye(sizes[n])[known[n]] if n in known else answers[n] for n in names]))
