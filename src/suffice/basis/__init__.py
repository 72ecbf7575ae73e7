"""What the rooms stand on and no user imports: argument and array types, threads of matrix products, slow libraries, version.

It may use variables and errors. Start with `libraries`, imported on first use; `argument_types` is for type checkers only.
"""

VERSION = "0.2.0"
