"""Time the kernels of serving on one's own GPU: ``python -m calibration measure``.

:mod:`.plan` says which shapes, in which order; a module per kernel family makes calls of them; :mod:`.timer`
times these; :mod:`.store` keeps the rows as tidy tables (:mod:`calibration.sources.tidy`) in a folder.
"""
