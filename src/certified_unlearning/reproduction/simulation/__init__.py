"""What a job of learning, unlearning or retraining runs: a plan and its data on a device."""
