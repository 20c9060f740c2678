"""What a step costs: models, GPUs, links, memory, step times and power."""
