"""Proofs about the ledger's log that can be checked without the model directory: heads, receipts, consistency."""
