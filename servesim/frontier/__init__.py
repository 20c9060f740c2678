"""Frontiers: what no other configuration beats, how sure that is, and where curves turn."""
