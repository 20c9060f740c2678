"""Readers of published and own kernel timings, all into the same tidy tables (:mod:`.tidy`)."""
