"""The mechanisms in a ledger: one module for each subclass of `ledger.method.Method`."""
