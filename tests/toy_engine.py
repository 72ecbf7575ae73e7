"""A toy engine: blocks in a list, dealt to partitions, steps run in a process pool. The proof that an engine is one small file.

Everything that goes to a partition or comes back is pickled. A spy notes what comes back: sums, and never rows, but for those of
`sample` and `distinct` and what a map is asked to make.
"""

from __future__ import annotations

import atexit
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from suffice.engines import Data, Sum
from suffice.engines.encoding.sources import Options, checked_words
from suffice.engines.partitions.partitions import Partitions, Raw
from suffice.engines.views.sample import Distinct, Sample
from suffice.errors import DataError, SufficeError


@cache
def pool() -> ProcessPoolExecutor:
    if (root := str(Path(__file__).parents[1])) not in sys.path:  # the other process finds this module by it
        sys.path.append(root)
    made = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    atexit.register(made.shutdown)
    return made


def run(message: bytes, blocks: list[Raw]) -> bytes:
    """In the other process: the work on a partition."""
    try:
        return pickle.dumps(pickle.loads(message)(blocks))
    except SufficeError as error:
        return pickle.dumps(error)
    except Exception as error:  # its cause in words of ours, not those of the process it happened in
        return pickle.dumps(DataError(f"a step failed: {type(error).__name__}: {error}"))


class Toy(Partitions):
    """Rows as Arrow tables, in this many partitions; `here` runs the work in this process, pickled all the same."""

    def __init__(self, blocks: list[pa.Table], n: int, options: Options, here: bool, rows_out: list[Any]) -> None:
        super().__init__(blocks[0].column_names, options)
        self.blocks, self.n, self.here, self.rows_out = blocks, n, here, rows_out

    def again(self, options: Options) -> Toy:
        return Toy(self.blocks, self.n, options, self.here, self.rows_out)

    def partitions(self) -> list[list[Raw]]:
        """The blocks in n parts, one of them empty if there are several."""
        filled = max(1, self.n - 1)
        ends = pairwise(np.linspace(0, len(self.blocks), filled + 1).astype(int).tolist())
        parts = [[Raw(i, self.blocks[i]) for i in range(a, b)] for a, b in ends]  # numbered through: the same bits for any n
        return [*parts, []] if self.n > 1 else parts

    def run(self, work: Callable[[Iterable[Raw]], Any]) -> Iterator[Any]:
        message = pickle.dumps(work)
        call: Callable[..., Iterator[bytes]] = map if self.here else pool().map
        parts = self.partitions()
        for answer in call(run, [message] * len(parts), parts):
            result = pickle.loads(answer)
            if isinstance(result, Exception):
                raise result
            self._spy(work, result)
            yield result

    def _spy(self, work: Any, result: Any) -> None:
        step = getattr(work, "step", None)
        while hasattr(step, "step"):  # seen through a view
            step = step.step
        if isinstance(result, Sum) and not isinstance(step, (Sample, Distinct)) and result.value is not None:
            n_rows = sum(map(len, self.blocks))
            self.rows_out += [(type(step).__name__, a.shape) for a in arrays(result.value) if n_rows > 50 and n_rows in a.shape]


def leaves(value: Any) -> Iterator[Any]:
    """All that a result is made of: arrays, numbers and words."""
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from leaves(part)
    elif isinstance(value, dict):
        yield from leaves(list(value.items()))
    elif hasattr(value, "__dict__"):
        yield from leaves(vars(value))
    else:
        yield value


def arrays(value: Any) -> list[np.ndarray]:
    """All arrays in a result."""
    return [leaf for leaf in leaves(value) if isinstance(leaf, np.ndarray)]


def toy(
    x: Any, variables: Any = None, *, weights: Any = None, n: int = 3, size: int = 100, here: bool = True, **how: Any
) -> Data:
    """Anything that becomes an Arrow table, in blocks of `size` rows and n partitions."""
    table = x if isinstance(x, pa.Table) else pa.table({k: pa.array(v, from_pandas=True) for k, v in dict(x).items()})
    if weights is not None and not isinstance(weights, str):
        table, weights = table.append_column("_weight", pa.array(np.asarray(weights, float))), "_weight"
    blocks = [pa.concat_tables([table.slice(a, size)]).combine_chunks() for a in range(0, max(1, len(table)), size)]
    options = Options({}, weights, checked_words(how.get("missing", ())), how.get("integers"))
    engine = Toy(blocks, n, options, here, [])
    engine = engine.again(options.declare(variables, engine.names))
    return Data(engine, engine.names)
