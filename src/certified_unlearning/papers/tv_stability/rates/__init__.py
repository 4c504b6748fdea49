"""Measured rates of chapters 4 and 5: how excess risk depends on the number of records, stability, and columns."""
