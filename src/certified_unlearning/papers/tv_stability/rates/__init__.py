"""Measured rates of chapters 4 and 5: excess risk against records, stability and columns, on known distributions."""
