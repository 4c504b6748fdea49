"""The common part of jobs for learning, unlearning or retraining: a plan and its data on a device."""
