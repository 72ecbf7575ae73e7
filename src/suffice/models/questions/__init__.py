"""What is asked of a network: evidence, exact and approximate answers, intervals, interventions, influence.

It uses inference and families. Start with `answering`.
"""
