"""Engines: from rows to statistics, wherever the rows are."""

from suffice.engines.data import Data, Schema
from suffice.engines.encode import texts
from suffice.engines.engine import Block, Engine, Known, Step, Sum, is_missing
from suffice.engines.scan import scan

__all__ = ["Block", "Data", "Engine", "Known", "Schema", "Step", "Sum", "is_missing", "scan", "texts"]
