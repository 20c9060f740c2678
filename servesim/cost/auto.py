"""The calibration that suits each pool: the profile of its GPU under the engine at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from servesim.check import Problem, quantity
from servesim.cost.fitted import FittedStepTime
from servesim.cost.gpu import Gpu
from servesim.cost.model import KvCacheDtype, Model
from servesim.cost.overhead import EngineOverhead
from servesim.cost.profile import Profile, profile_problems
from servesim.cost.step_time import PLAIN, Decoding
from servesim.words import listed


@dataclass(frozen=True)
class Auto:
    """The profiles at hand, by name, each with the keys of :class:`Profile`.

    A pool takes the one fitted on its GPU; where there is none, that of the GPU named by its ``profile_of``,
    and else the one whose GPU is nearest by datasheet, scaled by the ratios of the figures.
    """

    profiles: Mapping[str, Any] = quantity(factory=dict)

    def __hash__(self) -> int:
        return hash(tuple(self._built.values()))

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the profiles."""
        yield from self._wrong

    @cached_property
    def _wrong(self) -> list[Problem]:
        """What is wrong with the profiles; they have too many figures to be looked through twice."""
        said = self.profiles.items()
        return [problem for name, one in said for problem in profile_problems(one, f"profiles.{name}")]

    @cached_property
    def _built(self) -> dict[str, Profile]:
        return {name: Profile(**said) for name, said in self.profiles.items()}

    @property
    def name(self) -> str:
        """What the calibration is called in a summary."""
        return "auto"

    def described(self) -> dict[str, Any]:
        """Return what a summary says of the profiles."""
        return {"profiles": [profile.described() for profile in self._built.values()]}

    def profile(self, gpu: Gpu) -> Profile:
        """Return the profile for a GPU; there must be some profile."""
        by_gpu = {profile.gpu: profile for profile in self._built.values()}
        named = by_gpu.get(gpu.name) or by_gpu.get(gpu.profile_of or "")
        return named or min(self._built.values(), key=lambda profile: profile.distance(gpu))

    def lacks(self, gpu: Gpu) -> str | None:
        """Say what is wrong with a GPU's ``profile_of``, where it names a GPU that no profile is of.

        A GPU that names itself says so to those that build on it, and takes the nearest.
        """
        known = sorted(profile.gpu for profile in self._built.values())
        if gpu.profile_of in (None, gpu.name, *known) or gpu.name in known or not known:
            return None
        return f"has no profile at hand; there are those of {listed(known, 'and')}, or null for the nearest"

    def used(self, gpus: Iterable[Gpu]) -> Auto:
        """Return what remains of the profiles when only these GPUs need one."""
        names = {self.profile(gpu).name for gpu in gpus} if self.profiles else set()
        return Auto({name: said for name, said in self.profiles.items() if said["name"] in names})

    def step_time(
        self,
        model: Model,
        gpu: Gpu,
        tensor_parallel_size: int,
        kv_cache_dtype: KvCacheDtype,
        *,
        max_num_seqs: int,
        max_num_batched_tokens: int,
        overhead: EngineOverhead | None = None,
        each: Decoding = PLAIN,
    ) -> FittedStepTime:
        """Return the step times of one replica of ``tensor_parallel_size`` GPUs."""
        return self.profile(gpu).step_time(
            model,
            gpu,
            tensor_parallel_size,
            kv_cache_dtype,
            max_num_seqs=max_num_seqs,
            max_num_batched_tokens=max_num_batched_tokens,
            overhead=overhead,
            each=each,
        )
