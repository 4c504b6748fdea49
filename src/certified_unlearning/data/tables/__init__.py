"""Users' own tables: declarations, reading of files, conversion of values to numbers, preparation of rows."""
