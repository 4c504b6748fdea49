"""Data sets, one module each (`sets` lists them); users' own tables; removal requests."""
