"""Data sets: one module each (`sets` lists them), fetched and checked, prepared; own tables; removal requests."""
