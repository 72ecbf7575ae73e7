"""The registry, for pieces from outside: `Named` has a word, `command` makes a command: the room itself, by its public name."""

import sys

from suffice.basis import registry

sys.modules[__name__] = registry
