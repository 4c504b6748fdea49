"""Descent-to-Delete: as published, with a tighter analysis, and compared with retraining that is noised once."""
