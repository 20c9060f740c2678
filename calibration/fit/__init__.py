"""Fits the forms of ``servesim/cost/kernels`` to tidy tables, and scores them on rows held out."""
