"""Studies: what each asks, how to run it, and what came out."""
