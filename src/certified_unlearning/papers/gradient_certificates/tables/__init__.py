"""The tables of rows, one module for each experiment."""
