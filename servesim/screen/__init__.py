"""What is printed: one screen for a run, one table for several, and a bar while it lasts."""
