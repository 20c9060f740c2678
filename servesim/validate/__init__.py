"""Measured runs beside simulated ones: readers, replays and comparisons."""
