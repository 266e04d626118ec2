"""Papers redone, and the experiments behind their tables: `experiment` runs fits and `rows` keeps what came of them.

Each paper is a package with its settings, its tables and figures as functions of rows, and the rows.
"""
