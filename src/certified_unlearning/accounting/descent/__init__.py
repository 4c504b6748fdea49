"""Descent-to-Delete: as published, tighter, and against retraining that is noised once."""
