"""Queue orders: which waiting request is tried next, and which running one makes room."""
