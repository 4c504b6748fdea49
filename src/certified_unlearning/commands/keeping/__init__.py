"""Commands that keep a ledger running, such as those for receipts and holds."""
