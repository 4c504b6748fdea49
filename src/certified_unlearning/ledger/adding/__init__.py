"""`add`: new people's records enter a model that was made before."""
