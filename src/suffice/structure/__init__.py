"""Structure: from data to a graph. A search sees no data: it asks `LocalScores` for batches of (child, parents).

May use models and all below them, but nothing that learns parameters. Start with `search`, then `problem`, what a method is
given; `scoring/local_scores` says where scores come from; `methods/hill_climb` is the shortest method. Methods that find
undirected graphs are in `undirected`.
"""
