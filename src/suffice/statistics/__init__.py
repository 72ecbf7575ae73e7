"""Sufficient statistics: frozen values that add. Everything a learner knows about the data is one of these.

May use variables, and what displays and writes files. Start with `counts` and `moments`; `statistics` holds both by name.
"""

from suffice.statistics.counts import Counts, Request
from suffice.statistics.moments import Moments
from suffice.statistics.statistics import Statistics

__all__ = ["Counts", "Moments", "Request", "Statistics"]
