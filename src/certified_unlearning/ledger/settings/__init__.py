"""Settings of the ledger's mechanisms at `init`; each module has the name of the mechanism's module in `ledger.methods`."""
