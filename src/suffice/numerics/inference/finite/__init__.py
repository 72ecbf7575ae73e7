"""Exact inference among finite variables: parts, orders of elimination, trees of products, marginals. It uses kernels. Start with
`network`, then `questions`."""
