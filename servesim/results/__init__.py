"""Results: from the raw rows of a run to its tables and its summary."""
