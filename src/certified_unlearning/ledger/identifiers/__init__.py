"""The names of people on disk: pseudonyms, whose key may be kept elsewhere."""
