"""The page for a person about a model, in plain words without technical terms."""
