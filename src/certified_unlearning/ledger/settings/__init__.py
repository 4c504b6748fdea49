"""Settings of the ledger's mechanisms; the module of a mechanism has the same name as that in `ledger.methods`."""
