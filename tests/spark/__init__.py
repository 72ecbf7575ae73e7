"""Every learner on Spark, where there is one; `faults`, whose processes are killed, is for `make test-spark` alone."""

from __future__ import annotations

from importlib.util import find_spec

from suffice.engines.spark import check_java
from suffice.errors import DataError


def lacking() -> str | None:
    """What is not here that Spark needs, in a sentence."""
    if find_spec("pyspark") is None:
        return "the package pyspark is not installed here"
    try:
        check_java()
    except DataError as refusal:
        return str(refusal)
    return None
