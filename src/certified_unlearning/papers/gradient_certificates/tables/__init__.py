"""Tables of rows, one module an experiment."""
