"""What an attack on a model shows of its guarantee, at least: rates, p-values of guesses, and lower bounds."""
