"""From kernel timings to the profiles in ``conf/calibration``: read timings, fit forms, report errors.

Run from a clone: ``python -m calibration fit``. Not part of the installed package.
"""
