"""Estimators that unlearn exactly: model and state have the distribution of a fit to the remaining records."""
