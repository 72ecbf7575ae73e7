"""Models: networks, chains, Markov networks and machines, what they are and the questions that they answer.

May use families, incomplete, numerics, engines and statistics; learns nothing but what statistics and a prior give, and new rows
add (`estimation`). Start with `parts/network_parts`, what a network is, then `questions/answering`, which leads to one file for
each question, `rows/row_answering`, and `networks`, which has it all; `chains/chain_parts` and `chain` are the same of sequences,
`undirected/markov_parts` of undirected graphs.
"""
