"""Hidden chains: forward and backward, best paths, Kalman filters; step by step, or many sequences side by side in lanes.

Start with `chain`; `chain_lanes` says what lanes are.
"""
