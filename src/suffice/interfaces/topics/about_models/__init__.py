"""Public modules about models: what kinds there are, what their nodes may be, and priors.

Each may use every room, and has imports only. Start with `priors` or `regressions`.
"""
