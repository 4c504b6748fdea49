"""How people are named on disk: under pseudonyms, whose key may lie elsewhere."""
