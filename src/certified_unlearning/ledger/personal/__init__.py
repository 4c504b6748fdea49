"""What one person can be told of a model, in words without terms."""
