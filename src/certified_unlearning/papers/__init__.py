"""Papers, a folder each. `all` lists them; an experiment is imported without it."""
