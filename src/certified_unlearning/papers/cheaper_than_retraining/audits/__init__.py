"""Audits of the systems in the experiment `cost`, and of common practices without a certificate."""
