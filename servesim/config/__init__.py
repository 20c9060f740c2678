"""The configuration: from ``conf/`` and overrides to a checked scenario."""
