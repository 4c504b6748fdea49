"""Differentially private linear models: no single record has much influence, so a deletion needs no computation."""
