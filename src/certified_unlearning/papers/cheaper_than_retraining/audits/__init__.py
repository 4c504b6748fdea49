"""Audits of the systems that `cost` times, and of common practice without a certificate, compared with certificates."""
