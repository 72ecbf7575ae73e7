"""What is known about the graph before the data is seen, as users write it and as numbers.

It uses graphs. Start with `constraints`.
"""
