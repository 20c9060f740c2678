"""Routers: which replica of a pool gets the next request.

A router is a plain dataclass; ``start`` hands it a view of a pool and a random stream of its own, and
returns the function that picks. Any object with such a method serves as a router.
"""

from servesim.cluster.router.affinity import KvAware, PrefixAffinity
from servesim.cluster.router.blind import Random, RoundRobin
from servesim.cluster.router.load import LeastKv, LeastOutstanding, PowerOfTwo
from servesim.cluster.router.protocol import Pick, Router
from servesim.cluster.router.sticky import SessionSticky

__all__ = [
    "KvAware",
    "LeastKv",
    "LeastOutstanding",
    "Pick",
    "PowerOfTwo",
    "PrefixAffinity",
    "Random",
    "RoundRobin",
    "Router",
    "SessionSticky",
]
