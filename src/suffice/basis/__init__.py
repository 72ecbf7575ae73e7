"""What the rooms stand on and no user imports: types of arguments and arrays, threads of products of matrices, slow libraries, version.

It may use variables and errors. Start with `libraries`, imported on first use; `argument_types` is for type checkers only.
"""
