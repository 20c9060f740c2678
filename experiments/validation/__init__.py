"""How far servesim is from runs that others measured."""
