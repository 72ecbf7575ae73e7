"""Exact inference: orders of elimination, trees of products, messages, buckets of missing variables; and draws. Start with
`messages`, which has the one operation."""
