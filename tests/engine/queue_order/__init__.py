"""Tests of the queue orders."""
