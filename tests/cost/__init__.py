"""Tests of the cost model: textbook figures, laws of step times and memory, published logs."""
