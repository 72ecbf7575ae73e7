"""Structure: from data to a graph. A search sees no data: it asks `LocalScores` for batches of (child, parents).

Methods that find undirected graphs are in `methods`.
"""
