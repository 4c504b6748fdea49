"""The training copy: rows and labels, digested with a key, without what was removed; dense, or sparse if of texts."""
