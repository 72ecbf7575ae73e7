"""Engines: from rows to statistics, wherever the rows are.

May use statistics, kernels and variables; knows no families and no models. Start with `engine`: what an engine can do, and
`blocks`, what it is asked; then `scan`, the door for rows, and `local`, the engine of memory and files.
"""

from suffice.engines.reading.conll import read_conll
from suffice.engines.data import Data, KnownColumns, Schema
from suffice.engines.encoding.encode import texts
from suffice.engines.engine import Block, Engine, Step, Sum, is_missing
from suffice.engines.scan import scan
from suffice.engines.sequences.sequences import Missing, Refuse, Sequences, sequences

__all__ = [
    "Block",
    "Data",
    "Engine",
    "KnownColumns",
    "Missing",
    "Refuse",
    "Schema",
    "Sequences",
    "Step",
    "Sum",
    "is_missing",
    "read_conll",
    "scan",
    "sequences",
    "texts",
]
