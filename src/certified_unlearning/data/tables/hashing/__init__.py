"""Columns of text become sparse rows, without a vocabulary."""
