"""Incomplete rows: what the missing cells and hidden variables of rows are expected to be. Who learns and who predicts asks here.

To learn, rows are reduced once, by a fold whose results add (`components`: what every kind can do; `finite` and `mixed`
are kinds), and iterations ask for expected statistics and ln p of the observed cells; a search asks for those of any
family (`expectations`). Under a finished network rows come out as they went in: `rows` has posteriors, ln p, draws and modes.
May use families, engines, inference and statistics; knows no models. Start with `components`, then `finite`.
"""
