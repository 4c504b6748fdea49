"""Commands on a model directory, whose ledger records requests; `commands.keeping` has those for its upkeep."""
