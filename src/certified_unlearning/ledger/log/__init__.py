"""The log in a second place, and how it is used to update a directory that was restored from a backup."""
