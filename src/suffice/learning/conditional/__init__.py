"""Networks that tell one node from all others: conditional likelihood and margins.

It uses models. Start with `discriminative`.
"""
