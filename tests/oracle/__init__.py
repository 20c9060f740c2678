"""The oracle: a plain step-by-step simulator that the leap engine is held to."""
