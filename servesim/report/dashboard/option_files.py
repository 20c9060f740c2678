"""What the options of the configuration files say: which keys they have, and with which values.

The controls ask it instead of knowing: a key that no chosen option has needs no control, and what a control
says nothing of is as the file has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from servesim.config.groups import Groups, conf_dir
from servesim.config.yaml_files import read

#: A group of options, and the one that is chosen of it.
Option = tuple[str, str]


@lru_cache(maxsize=512)
def settings(group: str, option: str) -> Mapping[str, Any]:
    """Return the values that an option sets, by their keys from where it stands; none where there is none.

    Options of groups inside it are named by their places: ``arrivals`` of a workload is ``poisson``. A name
    comes from a URL, which is anybody's: only names of options are files that are read.
    """
    known = Groups([conf_dir()])
    file = read(conf_dir() / group / f"{option}.yaml") if option in known.options(group) else None
    if file is None:
        return {}
    found: dict[str, Any] = {}
    for each in file.values.get("defaults", ()):
        if isinstance(each, Mapping):
            found |= {place.rpartition("@")[2]: choice for place, choice in each.items()}
        elif each != "_self_":
            found |= settings(group, each)
    return found | dict(_flat({key: each for key, each in file.values.items() if key != "defaults"}))


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield keys with dots and their values; a mapping that is open to any keys is empty."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


@dataclass(frozen=True)
class Chosen:
    """The options that are chosen, by where their values go."""

    options: Mapping[str, Option]

    def has(self, key: str) -> bool:
        """Tell whether a key, or a group inside an option, is there; at a place without options it is."""
        place, rest = self._apart(key)
        if place is None:
            return True
        known = settings(*self.options[place])
        return rest in known or known.get(rest.partition(".")[0]) == {}

    def own(self, key: str) -> Any:
        """Return the value that a key has of itself; None where no file says so."""
        place, rest = self._apart(key)
        return None if place is None else settings(*self.options[place]).get(rest)

    def _apart(self, key: str) -> tuple[str | None, str]:
        """Return the place of the option that has a key, and the key from there."""
        path = key.replace("/", ".")
        places = [place for place in self.options if path.startswith(f"{place}.")]
        place = max(places, key=len, default=None)
        return place, path if place is None else path[len(place) + 1 :]
