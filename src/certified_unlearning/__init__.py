"""Certified machine unlearning: learn, unlearn, and say what was guaranteed."""

from importlib.metadata import version

__version__ = version("certified-unlearning")
