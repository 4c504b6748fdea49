"""Differential privacy: noise, its composition, selections, and what private learners of linear models guarantee."""
