"""The SQLite file of a ledger: its tables, its events, and the owners of rows."""
