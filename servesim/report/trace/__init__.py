"""The page of a trace: what comes when, how long it is, and what prompts share."""
