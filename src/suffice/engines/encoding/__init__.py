"""From cells to codes: what a column is, declared or inferred, what may have been meant otherwise, and how it is encoded.

It uses steps only. Start with `sources` for where rows come from, `encode` for what becomes of them.
"""
