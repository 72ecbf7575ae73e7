"""What a question is answered by: distributions of states, mixtures of numbers, all marginals, with how they were found.

It knows variables and arrays, and no network. Start with `answers`.
"""
