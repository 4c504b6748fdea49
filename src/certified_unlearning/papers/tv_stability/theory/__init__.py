"""The formulas by which claims on exact unlearning are judged: exact distributions, and the dissertation's formulas."""
