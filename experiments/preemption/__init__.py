"""When KV blocks are short, whether to recompute or to swap."""
