"""The reproduced papers, each in its own folder.

The module `all` lists the papers and imports none of their experiments' code.
"""
