"""Engines: from rows to statistics, wherever the rows are."""

from suffice.engines.blocks import Batch
from suffice.engines.data import Data, Schema
from suffice.engines.scan import scan

__all__ = ["Batch", "Data", "Schema", "scan"]
