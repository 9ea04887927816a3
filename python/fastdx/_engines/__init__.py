"""Private helpers of the engine modules: recipes of mechanisms, feature columns, Spark."""
