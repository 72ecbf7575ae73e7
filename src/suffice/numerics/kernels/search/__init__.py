"""Searches for graphs: orders, subsets, greedy changes, tests of independence, walks over orders. They use counting. Start with
`greedy`."""
