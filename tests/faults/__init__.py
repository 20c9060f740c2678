"""Faults planted on purpose: each must be caught by the tests."""
