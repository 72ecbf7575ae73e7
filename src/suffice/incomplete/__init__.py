"""Incomplete rows: what the missing cells and hidden variables of rows are expected to be.

Rows are reduced once, by a fold whose results add; one service answers from the reduction: expected statistics, ln p of the
observed cells, draws, modes. May use families, engines, inference and statistics; knows no models.
"""
