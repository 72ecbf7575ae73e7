"""Engines: from rows to statistics, wherever the rows are.

May use statistics, kernels and variables; knows no families and no models. Start with `engine`: what an engine can do, and
`blocks`, what it is asked; then `scan`, the door for rows, and `local`, the engine of memory and files.
"""

from suffice.engines.data import Data
from suffice.engines.encoding.encode import texts
from suffice.engines.engine import Block, Step, Sum, is_missing
from suffice.engines.scan import scan

__all__ = ["Block", "Data", "Step", "Sum", "is_missing", "scan", "texts"]
