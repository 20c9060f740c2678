"""Pages of comparisons with measured runs."""
