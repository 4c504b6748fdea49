"""Data sets, one module for each (`sets` lists them); users' own tables; removal requests."""
