"""The log in a second place, and how it brings a directory that was restored from a backup up to date."""
