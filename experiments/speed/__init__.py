"""How fast is servesim itself? Run ``python -m experiments.speed`` from a clone; README.md has the answer."""
