"""Searches over many configurations: which one meets an objective, and at which price."""
