"""How much of a GPU's arithmetic one user leaves idle."""
