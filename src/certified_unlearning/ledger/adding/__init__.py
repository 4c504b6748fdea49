"""The command `add`: new people's records enter an existing model."""
