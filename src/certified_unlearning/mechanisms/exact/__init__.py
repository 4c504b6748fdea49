"""Mechanisms of exact unlearning: edited models and states have the distribution of a run on the edited data."""
