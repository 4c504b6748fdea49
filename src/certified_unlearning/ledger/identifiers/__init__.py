"""How people are named on disk: by pseudonyms, whose key may be kept elsewhere."""
