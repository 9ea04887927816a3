"""Private helpers of the engine modules: recipes of mechanisms, functions of batches, Spark."""
