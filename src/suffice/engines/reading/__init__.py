"""Where rows are read from: frames, text files, Parquet, CoNLL; and where numbers are cut into bins.

It uses encoding, steps and views. Start with `files`; only `frames` imports duckdb.
"""
