"""Commands that keep a ledger running: receipts, holds."""
