"""What an attack on a model proves about its guarantee: bounds on rates, p-values of guesses, lower bounds."""
