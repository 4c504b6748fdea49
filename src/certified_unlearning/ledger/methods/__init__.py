"""What each mechanism does for the ledger: one module a `ledger.method.Method`."""
