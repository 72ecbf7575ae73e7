"""Jobs of Spark: work on its way to workers, what they answer, and what went wrong, in one sentence of ours."""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

from suffice.errors import DataError, SufficeError, printable


@dataclass(frozen=True)
class Job:
    """Some work on its way to a worker, which has the same version of the package. What it refuses comes back as an answer, for
    it would be no use to try again; all other errors are raised, and Spark tries again."""

    work: bytes
    version: str

    def __call__(self, task: Any) -> bytes:
        try:
            if (own := package_version()) != self.version:
                raise DataError(f"a worker has version {own} of suffice, and the driver {self.version}: install the same")
            return pickle.dumps(pickle.loads(self.work)(task))
        except SufficeError as refusal:
            return pickle.dumps(refusal)
        finally:
            spare_modules(len(sys.modules))


@cache
def package_version() -> str:
    """The version of this package."""
    return version("suffice")


@cache
def spare_modules(n_modules: int) -> None:
    """Have the garbage collector pass over what is loaded, whenever there is more of it: Spark calls it after each task, and to
    look at all modules would be most of what a task costs."""
    gc.freeze()


def unwrap(answer: bytes) -> Any:
    """What a worker gave; what it refused is raised."""
    result = pickle.loads(answer)
    if isinstance(result, SufficeError):
        raise result
    return result


def add_answers(a: bytes, b: bytes) -> bytes:
    """The sum of two answers, on a worker."""
    parts = [pickle.loads(answer) for answer in (a, b)]
    refusals = [part for part in parts if isinstance(part, SufficeError)]
    if refusals:
        return pickle.dumps(refusals[0])
    parts[0] += parts[1]
    return pickle.dumps(parts[0])


@contextmanager
def plain_errors(what: str) -> Iterator[None]:
    """Errors of Spark in one sentence of ours, without the trace of Java."""
    try:
        yield
    except SufficeError:
        raise
    except Exception as error:
        raise DataError(f"{what}: {_cause(str(error))}") from None


def _cause(text: str) -> str:
    """The first error that a trace names in Python's words, or else its first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any("No module named 'suffice'" in line for line in lines):
        return "the Python of the workers has no suffice: install it there, or set PYSPARK_PYTHON before the session starts"
    if any("Python worker exited unexpectedly" in line for line in lines):
        return "a Python worker ended again and again, as one does that is killed, or has no memory left"
    if any("maxResultSize" in line for line in lines):
        return (
            "the sums of the partitions are more than Spark lets its driver take: ask for fewer or smaller tables, or start the "
            "session with a larger spark.driver.maxResultSize"
        )
    named = [line for line in lines if line.split(":")[0].endswith(("Error", "Exception")) and not line.startswith("org.")]
    return printable(named[0] if named else lines[0] if lines else "Spark gave no reason", 300)
