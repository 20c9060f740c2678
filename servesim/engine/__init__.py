"""The engines: what one replica does from step to step."""
