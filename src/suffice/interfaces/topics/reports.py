"""Reports: what was learned from what, in one HTML file: the room itself, by its public name."""

import sys

from suffice.interfaces import reports

sys.modules[__name__] = reports
