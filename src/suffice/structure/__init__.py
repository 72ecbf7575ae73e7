"""Structure: from data to a graph. A search sees no data: it asks `LocalScores` for batches of (child, parents)."""
