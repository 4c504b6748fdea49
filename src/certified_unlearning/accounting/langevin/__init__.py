"""Langevin unlearning: log-Sobolev analyses, its interchangeable accountants, planning with them, finite learning."""
