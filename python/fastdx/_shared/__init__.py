"""Used in several places and not by users: files that are replaced, rounding of shown numbers."""
