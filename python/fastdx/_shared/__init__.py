"""Private helpers of several modules: atomic file replacement, rounding of shown numbers, …"""
