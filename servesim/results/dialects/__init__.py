"""Dialects: the metrics of benchmarking tools under their own names, units and statistics."""
