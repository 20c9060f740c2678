"""Export: the result files of benchmarking tools, written from a run."""
