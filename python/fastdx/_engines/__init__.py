"""What the modules of engines share: recipes of mechanisms, and Spark's side."""
