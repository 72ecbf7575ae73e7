"""What all rooms stand on: variables, the registry of words, limits and the one loop of long runs, pictures and printed tables.

It may use errors only. Start with `variables` and `registry`; `iteration` is the loop, `limits` what ends it, `output` and
`pictures` what is seen. `libraries` are imported on first use; `argument_types` is for type checkers only.
"""

VERSION = "0.2.0"
