"""How the pages of the documentation are read, run, checked and made into a site.

`cells.py` reads a page and runs it without Sphinx, which is what `make test` does; the other files are extensions of Sphinx that
`docs/conf.py` lists. Start with `cells.py`.
"""
