"""Audits of what `cost` times, and of what people do without a certificate: certified beside measured."""
