"""Suffice learns probabilistic graphical models from sufficient statistics."""
