"""What a person reads about a model, in plain words without technical terms."""
