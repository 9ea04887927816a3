"""Private helpers of several modules: atomic file replacement, rounding of shown numbers, …"""

LEAST_TEXTS = 40
"""Texts that an evaluation needs."""
