"""The page and the timeline of one run, from the tables that it left."""
