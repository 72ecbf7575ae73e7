"""Engines: from rows to statistics, wherever the rows are."""

from suffice.engines.data import Data, Schema
from suffice.engines.engine import Block, Engine, Known, Step, Sum
from suffice.engines.scan import scan

__all__ = ["Block", "Data", "Engine", "Known", "Schema", "Step", "Sum", "scan"]
