"""The content of a job of learning, unlearning or retraining: a plan and its data on a device."""
