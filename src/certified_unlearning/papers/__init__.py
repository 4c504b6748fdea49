"""The reproduced papers, each in its own folder.

The module `all` lists the papers. It imports no code of their experiments.
"""
