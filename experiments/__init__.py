"""Experiments of the papers and our own: ``python -m experiments`` (needs scikit-learn)."""
