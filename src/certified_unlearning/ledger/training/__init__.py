"""The training copy: rows and labels, dense or (for text) sparse, with keyed digests and without removed records."""
