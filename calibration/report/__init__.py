"""A page per profile: how near its forms are to the timings, and where they are not."""
