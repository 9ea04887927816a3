"""Streaming text, CSV, JSONL and Parquet through a function on lists of texts: a file a format.

Every reader works on batches of bounded size, so memory stays flat whatever the size of a file.
"""
