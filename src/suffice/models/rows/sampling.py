"""Rows drawn from a network, node by node in topological order (Henrion 1988), in blocks that do not depend on threads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.basis.libraries import pa
from suffice.errors import ModelError, TooLarge, bytes_in_words, whole
from suffice.models.parts.network_parts import NetworkParts
from suffice.variables import Finite, Variable, is_whole

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 65_536
MAX_BYTES = 2**35


def sample(bn: NetworkParts, n: int, seed: int | None) -> pa.Table:
    """Block b has a generator of its own, seeded by (seed, b): the rows are the same whatever the number of threads."""
    whole(n, "the number of rows to draw", 0, ModelError)
    seed = None if seed is None else whole(seed, "a seed", 0, ModelError)
    sizes = {name: v.n_states if isinstance(v, Finite) else 0 for name, v in bn.variables.items()}
    kinds = {name: np.dtype(np.int8 if 0 < k <= 127 else np.int32 if k else np.float64) for name, k in sizes.items()}
    size = n * sum(kind.itemsize for kind in kinds.values())
    if size > MAX_BYTES:
        raise TooLarge(f"{n:,} rows of {len(bn)} columns need {bytes_in_words(size)}; draw them in parts with several seeds")
    columns = {name: np.empty(n, dtype=kind) for name, kind in kinds.items()}
    starts = range(0, n, BLOCK)
    seeds = np.random.SeedSequence(seed).spawn(len(starts))

    def fill(start: int, entropy: np.random.SeedSequence) -> None:
        stop = min(start + BLOCK, n)
        rng = np.random.Generator(np.random.SFC64(entropy))
        block = {name: c[start:stop] for name, c in columns.items()}
        for name in bn.dag.topological_order:
            block[name][:] = bn[name].draw(block, rng, stop - start)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(fill, starts, seeds):
            pass
    return pa.table(arrow_columns(bn.variables, columns))


def arrow_columns(variables: Mapping[str, Variable], columns: Mapping[str, Any]) -> dict[str, Any]:
    """Codes and numbers as Arrow arrays: states as a dictionary, counts as whole numbers."""
    arrays = {}
    for name, values in columns.items():
        v = variables[name]
        if isinstance(v, Finite):
            arrays[name] = pa.DictionaryArray.from_arrays(
                pa.array(values), pa.array(v.states, pa.string()), ordered=not v.inferred
            )
        else:
            arrays[name] = pa.array(values.astype(np.int64) if is_whole(v) else values)
    return arrays
