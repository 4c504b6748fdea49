"""Users' own tables: their declaration, reading of files, conversion of values to numbers, preparation of rows."""
