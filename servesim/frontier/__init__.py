"""Frontiers: what no other configuration beats, how sure that is, and which is the cheapest that will do."""
