"""The dashboard: what-ifs that answer at once, and sweeps that are judged anew."""
