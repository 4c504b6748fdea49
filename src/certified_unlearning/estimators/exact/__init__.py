"""Estimators that forget exactly: after a request, model and state have the law of a fit to the remaining records."""
