"""What the page is told: a file for each kind of question, each function takes a `Call`.

It may use the library, the shelf and `calls`. Start with `beliefs`.
"""
