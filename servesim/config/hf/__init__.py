"""Models as Hugging Face describes them: from ``config.json`` to the fields of a model."""
