"""The training copy: rows and labels, digested with a key, without removed records; dense, or sparse for text."""
