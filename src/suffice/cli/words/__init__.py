"""Words of options as values of the library: `bdeu:10`, `hill-climb`, `y=logistic`, `P(a | b=yes)`.

They may use the values that they name, and open no file. Start reading at `vocabulary.py`.
"""
