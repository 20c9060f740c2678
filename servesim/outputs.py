"""Where a verb may write: not over what it reads, nor over what a run has left."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from servesim.check import Problem
from servesim.words import listed

#: Files that a run leaves in its folder, and a study in its own: nothing makes them again but running it.
_OF_A_RUN = ("summary.json", "config.yaml", "requests.parquet", "steps.parquet", "gaps.parquet")
_OF_A_STUDY = ("study.yaml", "sweep.parquet", "points.log", "finished.json")
#: What verbs write into such a folder, each its own.
_MADE = ("page.html", "index.html", "timeline.json", "vllm.json", "vllm_detailed.json")
#: By which of its files such a folder is known.
_SIGNS = ("summary.json", "requests.parquet", "sweep.parquet", "study.yaml")


def overwritten(out: Path | None, inputs: Iterable[Path], own: Collection[str] = ()) -> Iterator[Problem]:
    """Yield why ``--out`` must not be written: it is an input, or a file of the folder of a run or a study.

    Links are followed. ``inputs`` are the files and the folders that the verb reads; ``own`` are the names
    that its output has in such a folder.
    """
    if out is None or out.is_dir():
        return
    target = out.resolve()
    if any(_same(out, each) for each in inputs if not each.is_dir()):
        yield Problem("--out", str(out), "is a file that is read: name another")
    elif _is_kept(target) or any(_same(out, each) for folder in inputs for each in _kept_files(folder)):
        yield Problem("--out", str(out), "is a file of the run itself")
    elif target.name in _MADE and target.name not in own and target.is_file() and _is_left(target.parent):
        yield Problem("--out", str(out), "is what another verb has left beside the run")


def misnamed(out: Path | None, endings: Collection[str], what: str) -> Iterator[Problem]:
    """Yield what is wrong with the name of ``--out``, which is to hold ``what``, "a page" or the like.

    Without ``endings`` a file may be called anything.
    """
    if out is None:
        return
    if out.is_dir():
        yield Problem("--out", str(out), f"is a folder: name the file that is to hold {what}")
        return
    special = out.exists() and not out.is_file()  # a pipe, say, has the name that it has
    if endings and not special and out.suffix.lower() not in endings:
        yield Problem("--out", str(out), f"must end in {listed(endings)}: what is written is {what}")


def _is_kept(target: Path) -> bool:
    return target.name in (*_OF_A_RUN, *_OF_A_STUDY) and _is_left(target.parent)


def _is_left(folder: Path) -> bool:
    """Tell whether a folder is one that a run or a study has left."""
    return any((folder / sign).is_file() for sign in _SIGNS)


def _kept_files(folder: Path) -> list[Path]:
    """Return the files that a run or a study may have left in a folder."""
    return [folder / name for name in (*_OF_A_RUN, *_OF_A_STUDY)] if folder.is_dir() else []


def _same(one: Path, other: Path) -> bool:
    """Tell whether both are the same file, also by a link."""
    return one.exists() and other.exists() and one.samefile(other)
