"""Mechanisms of exact unlearning: after an edit, model and stored state have the law of a run on the edited data."""
