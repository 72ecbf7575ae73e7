"""Models: networks, chains, Markov networks and machines, what they are and the questions that they answer.

May use families, incomplete, inference, engines and statistics; learns nothing. Start with `bayes_net`, then
`questions/answering`, which leads to one file for each question; `chains/chain_parts` and `chain` are the same
of sequences, `markov_net` of undirected graphs.
"""
