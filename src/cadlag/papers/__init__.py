"""Papers redone: a package each, with its settings, its tables and figures as functions of rows, and the rows."""
