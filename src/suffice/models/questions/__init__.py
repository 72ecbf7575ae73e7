"""What is asked of a network: evidence, exact and approximate answers, intervals, interventions, influence, expectations.

It uses inference, families and the parts of networks. Start with `answering`; `answers`, `mixture` and `densities` are what comes
out, `intervals` and `sampling` are by draws, of the parameters and of the nodes.
"""
