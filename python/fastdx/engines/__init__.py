"""fastdx in other engines: Spark, Ray Data, scikit-learn, datasets, spaCy, Presidio, DuckDB.

Each module needs its engine: the extra of the same name.
"""
