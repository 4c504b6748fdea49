"""Proofs about the ledger's log that hold without the model directory: heads, receipts, consistency."""
