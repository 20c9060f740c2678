"""The forms: how long one kernel takes, by its sizes, on a GPU of given datasheet figures.

Each form is a frozen dataclass whose fields are coefficients fitted to timings (``calibration/`` in a
clone; the fitted values are in ``conf/calibration``). Rates are fractions of the datasheet's figure, so that
another figure scales them; latencies are seconds. ``seconds`` takes numbers or arrays, never decreases in a
size, and is never below what the datasheet allows (:mod:`.floor`).
"""
