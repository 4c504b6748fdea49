"""What a person can read about a model, in plain words without technical terms."""
