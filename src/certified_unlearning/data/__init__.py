"""Data sets: one module each (`sets` lists them), fetched, checked and prepared; own tables; removal requests."""
