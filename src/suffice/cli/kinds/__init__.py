"""What `fit`, `learn` and `predict` take for each kind of model: chains, undirected models, labels.

They may use words and inputs, and no command. Start reading at `chains.py`.
"""
