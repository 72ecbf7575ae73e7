"""Linear chains of labels: which attributes a step has, and sequences encoded by them.

It may use all that models may. Start with `windows`: a `LinearChain` says what a label depends on; `vocabulary` numbers the
attributes, `encoding` makes blocks of sequences integers, `features` makes them scores.
"""
