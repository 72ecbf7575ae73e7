"""Structural EM: graph and parameters from incomplete rows. Start with `structural_em`."""
