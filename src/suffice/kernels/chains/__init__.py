"""Hidden chains: forward and backward, best paths, Kalman filters; step by step, or many sequences side by side in lanes.

Start with `chain`; `lane_rows` says what lanes are.
"""
