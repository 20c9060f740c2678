"""The page of a sweep: what it buys, at which latency and price, and how sure that is."""
