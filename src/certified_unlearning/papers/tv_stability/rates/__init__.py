"""Measured rates of chapters 4 and 5: excess risk on known distributions, by records, stability and columns."""
