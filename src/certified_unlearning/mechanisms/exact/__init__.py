"""Mechanisms of exact unlearning: an edit gives model and stored state the distribution of a run on the edited data."""
