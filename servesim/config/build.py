"""From the composed mapping to components: every key finds its field, and every mistake is kept.

A component is a frozen dataclass; its nested mappings become its nested components. Where a place can
hold several classes, its mapping names one by its ``kind``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from servesim.check import Problem, field_problems
from servesim.config.groups import Groups, conf_dir
from servesim.config.names import distance, nearest, words
from servesim.field_types import field_types, named_part, options
from servesim.words import listed

Component = TypeVar("Component")

#: The classes that each place can hold, by kind: {"router": {"random": Random, ...}, ...}.
Kinds = Mapping[str, Mapping[str, type]]

_UNSET = "???"  # how OmegaConf writes a value that must be given
_MOST_SUGGESTIONS = 3


def build(
    component: type[Component],
    values: Mapping[str, Any],
    kinds: Kinds,
    later: Mapping[str, str],
    ready: Mapping[str, Any] | None = None,
) -> tuple[Component | None, list[Problem]]:
    """Return the component that ``values`` describe, and what is wrong with the keys.

    Where a key is missing the component is None, and what is wrong with the values of the others is
    listed, too; a component that could be built is yet to be checked. ``later`` are keys that are known
    but not modelled yet, each with what it stands for. ``ready`` are nested components that have been
    built before, by their paths: they are taken as they are.
    """
    builder = _Builder(kinds, ready or {})
    built = builder.component(component, values, "")
    return built, [*builder.unknown_problems(later), *builder.problems]


class _Builder:
    """Builds a tree of components, and remembers the keys that it knows and those that it does not."""

    def __init__(self, kinds: Kinds, ready: Mapping[str, Any]) -> None:
        self.kinds, self.ready = kinds, ready
        self.problems: list[Problem] = []
        self.known: list[str] = []
        self.unknown: list[tuple[type, str, str, Any]] = []  # component, path of it, key, value

    def component(self, component: type, values: Mapping[str, Any], path: str) -> Any:
        """Return one component, or None (and say why) where a value is missing."""
        types = field_types(component)
        fields = {field.name: field for field in dataclasses.fields(component)}
        self.unknown += [
            (component, path, key, value)
            for key, value in values.items()
            if key not in fields and not (value is None and _joined(path, key) in self.kinds)
        ]
        given: dict[str, Any] = {}
        for name, field in fields.items():
            if not self._classes(types[name], _joined(path, name)):
                self.known.append(_joined(path, name))
            if name in values and values[name] != _UNSET:
                self._fill(given, name, types[name], values[name], _joined(path, name))
            elif _is_required(field):
                unit = field.metadata.get("unit")
                message = f"is missing{f' ({unit})' if unit else ''}"
                self.problems.append(Problem(_joined(path, name), None, message))
        if any(_is_needed(field, values) and name not in given for name, field in fields.items()):
            self.problems += field_problems(component, given, path)
            return None
        return component(**given)

    def _fill(self, given: dict[str, Any], name: str, hint: Any, value: Any, path: str) -> None:
        """Put what ``value`` describes into ``given``, or say what is wrong with it."""
        if path in self.ready:
            given[name] = self.ready[path]
            return
        classes = self._classes(hint, path)
        if part := named_part(hint):
            self._fill_named(given, name, part, value, path)
        elif not classes or (value is None and type(None) in options(hint)):
            given[name] = _plain(value, hint)
        elif not isinstance(value, Mapping):
            self.problems.append(Problem(path, value, self._asks_for_keys(path)))
        else:
            rest = dict(value)
            optional = type(None) in options(hint)
            kind = rest.pop("kind", None)
            component = self._of_kind(kind, path, optional) if path in self.kinds else classes[0]
            built = component and self.component(component, rest, path)
            if built is not None:
                given[name] = built

    def _fill_named(self, given: dict[str, Any], name: str, part: type, value: Any, path: str) -> None:
        """Put the components that ``value`` has by name into ``given``, or say what is wrong with it."""
        if not isinstance(value, Mapping):
            message = f"must be names, each with keys: {path}.NAME.KEY=VALUE"
            self.problems.append(Problem(path, value, message))
            return
        built: dict[str, Any] = {}
        for key, own in value.items():
            place = _joined(path, str(key))
            if isinstance(own, Mapping):
                built[str(key)] = self.component(part, own, place)
            else:
                self.problems.append(Problem(place, own, self._asks_for_keys(place)))
        if len(built) == len(value) and None not in built.values():
            given[name] = built

    def _classes(self, hint: Any, path: str) -> list[type]:
        """Return the classes of components that a place can hold: none where it holds a plain value."""
        if path in self.kinds:
            return list(self.kinds[path].values())
        return [
            choice
            for choice in options(hint)
            if isinstance(choice, type) and dataclasses.is_dataclass(choice)
        ]

    def _asks_for_keys(self, path: str) -> str:
        if path in self.kinds or "." not in path:
            return f"is a group of keys; choose an option of it with {_choice(path, 'NAME')}"
        return f"is a group of keys; set one of them with {path}.KEY=VALUE"

    def _of_kind(self, kind: Any, path: str, optional: bool) -> type | None:
        known = self.kinds[path]
        if kind is None and optional:
            message = f"is none so far; choose {_choice(path, listed(known))} first"
            self.problems.append(Problem(path, None, message))
            return None
        if isinstance(kind, str) and kind in known:
            return known[kind]
        close = nearest(str(kind), known)
        hint = f" (nearest: {close})" if close else ""
        self.problems.append(Problem(f"{path}.kind", kind, f"must be {listed(known)}{hint}"))
        return None

    def unknown_problems(self, later: Mapping[str, str]) -> Iterator[Problem]:
        """Yield one problem for each unknown key, with what was probably meant."""
        for component, path, key, value in self.unknown:
            hints: Mapping[str, str] = getattr(component, "hints", {})
            if key in hints:
                message = hints[key]
                value = self._chosen(_joined(path, key), value)
            elif sentence := _of_later(key, later):
                message = f"{sentence} not modelled in this version"
            else:
                message = "unknown key" + self._suggestion(component, path, key, value)
            yield Problem(*_leaf(_joined(path, key), value), message)

    def _chosen(self, path: str, value: Any) -> Any:
        """Return what was typed of a value: of an option of a group, its name."""
        named = path in self.kinds and isinstance(value, Mapping) and "kind" in value
        return value["kind"] if named else value

    def _suggestion(self, component: type, path: str, key: str, value: Any) -> str:
        """Return what to write instead: the same name elsewhere, or else the nearest one here."""
        owners = [kind for kind, other in self.kinds.get(path, {}).items() if key in field_types(other)]
        if owners:
            have = f" of this kind; {listed(owners, 'and')} {'have' if len(owners) > 1 else 'has'} it"
            options_ = Groups([conf_dir()]).options(path.replace(".", "/"))
            return f"{have}: choose {_choice(path, listed(owners))}" if {*owners} <= {*options_} else have
        full = _leaf(_joined(path, key), value)[0]
        places = dict.fromkeys([*self.known, *(_joined(path, name) for name in field_types(component))])
        close = _closest(full, list(places))
        return f"; did you mean {listed(close)}?" if close else ""


def _choice(path: str, option: str) -> str:
    """Return the override that chooses an option for a place."""
    return f"{path.replace('.', '/')}={option}"


def _closest(path: str, places: list[str]) -> list[str]:
    """Return the places whose last name is that of ``path``, holds all its words, or is nearest to it."""
    last = _last(path)
    same = [place for place in places if _last(place) == last]
    fuller = same or [place for place in places if words(last) <= words(_last(place))]
    if same or 0 < len(fuller) <= _MOST_SUGGESTIONS:
        return fuller[:_MOST_SUGGESTIONS]
    if begun := [place for place in _siblings(path, places) if _begins(last, _last(place))]:
        return begun[:_MOST_SUGGESTIONS]
    close = nearest(last, map(_last, places))
    alike = [place for place in places if _last(place) == close]
    return sorted(alike, key=lambda place: distance(path, place))[:1]


def _siblings(path: str, places: list[str]) -> list[str]:
    """Return the places beside ``path``."""
    beside = path.rpartition(".")[0]
    return [place for place in places if place.rpartition(".")[0] == beside]


def _begins(name: str, known: str) -> bool:
    """Tell whether one of two names is the beginning of the other, in whole words: input, input_tokens."""
    short, long = sorted((name, known), key=len)
    return long.startswith(f"{short}_")


def _of_later(key: str, later: Mapping[str, str]) -> str | None:
    """Return what a key stands for that is not modelled yet, by the whole key or by a word of it."""
    return later.get(key) or next((later[word] for word in key.split("_") if word in later), None)


def _is_needed(field: dataclasses.Field[Any], values: Mapping[str, Any]) -> bool:
    """Tell whether a component cannot be built without a field: it has no default, or its value is wrong."""
    return _is_required(field) or values.get(field.name, _UNSET) != _UNSET


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _plain(value: Any, hint: Any) -> Any:
    """Return a value as its field holds it: lists as tuples, whole floats as integers and so on."""
    allowed = options(hint)
    if isinstance(value, list):
        return tuple(_plain(item, Any) for item in value)
    if isinstance(value, float) and value.is_integer() and int in allowed and float not in allowed:
        return int(value)
    if isinstance(value, str) and Path in allowed:
        return Path(value)
    return value


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _leaf(path: str, value: Any) -> tuple[str, Any]:
    """Follow mappings of one key down to the value that the user typed."""
    while isinstance(value, Mapping) and len(value) == 1:
        [(key, value)] = value.items()
        path = _joined(path, str(key))
    return path, value
