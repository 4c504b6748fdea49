"""What an attack on a model proves about the model's guarantee: bounds on rates, p-values of guesses, lower bounds."""
