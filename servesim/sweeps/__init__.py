"""Sweeps: many scenarios, one table with a row for each."""
