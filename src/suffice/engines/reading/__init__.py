"""Where rows are read from: frames, text files, Parquet, CoNLL.

It uses encoding and steps. Start with `files`; only `frames` imports duckdb.
"""
