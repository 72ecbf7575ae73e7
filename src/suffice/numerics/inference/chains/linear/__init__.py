"""Hidden numbers that move linearly: Kalman's filter and smoother.

It uses kernels. Start with `kalman`, then `gaussian`.
"""
