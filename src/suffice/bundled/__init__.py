"""Networks that come with the package, from the Bayesian network repository (see NOTICE for authors and licence)."""
