"""Langevin unlearning: log-Sobolev analyses, interchangeable accountants, planning, and finite learning."""
