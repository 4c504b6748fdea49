"""Cheaper than retraining: our own analysis of what a request costs, beside fitting again; no paper of others."""
