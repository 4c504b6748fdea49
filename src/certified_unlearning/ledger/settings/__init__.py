"""Settings of the ledger's mechanisms; a mechanism's modules have the same name here and in `ledger.methods`."""
