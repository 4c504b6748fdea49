"""Certificates of single predictions by abstract gradient training (Wicker et al., 2024)."""
