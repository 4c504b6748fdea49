"""Commands on a model directory and its ledger of requests; the commands in `commands.keeping` maintain both."""
