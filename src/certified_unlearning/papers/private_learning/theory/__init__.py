"""The formulas by which claims on private learning are judged: rates, lower bounds, and printed parameters."""
