"""What an attack on a model proves about its guarantee: rates, p-values of guesses, and lower bounds."""
