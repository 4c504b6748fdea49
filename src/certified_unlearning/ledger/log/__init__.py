"""The log in a second place, and how a directory that was restored from a backup comes to the present."""
