"""Real variables: Gaussian given the finite ones; sparse precisions. It uses finite. Start with `gaussian`."""
