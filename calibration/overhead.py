"""The engine terms of ``conf/engine_overhead``, fitted on measured closed loops by simulating them.

``python -m calibration overhead --data DIR``: for each engine, part of the runs is fitted and the rest held
out. Kernel times are the profile's; only what the engine adds is fitted, as ``servesim validate --fit`` does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from calibration.conf import CONF
from calibration.sources.runs import read_runs
from calibration.sources.tidy import SourceError
from servesim.check import ConfigError
from servesim.scenario import Scenario
from servesim.validate.closed_loop import bases
from servesim.validate.measured import THROUGHPUT
from servesim.validate.points import Point, Points, read_points
from servesim.validate.terms import Runs, fit_terms, of_points
from servesim.validate.terms_file import write_terms

#: GPUs and models of measured runs that are none of the shipped ones.
OWN_CONF = Path(__file__).parents[1] / "experiments" / "validation" / "conf"

#: The runs below the folder of measured data.
CLOSED_LOOP = Path("serving", "h100_closed_loop.csv")
BATCHES = Path("serving", "vllm085_llama8b_h100_64gb_batch_steps.csv")
BATCH_COLUMNS = [
    *("max_num_seqs", "output_len", "num_prompts", "tot_in"),
    *("mean_tpot_ms", "n_steps", "step_gap_p50_ms", "kv_tokens"),
]
TPOT, REQUESTS = ("tpot", "mean"), (THROUGHPUT, "requests")


@dataclass(frozen=True)
class Engine:
    """An engine version and its runs: those that fit ``held_out`` are judged, the others fitted.

    ``read`` gives the points below a folder of data, ``overrides`` what they ran on as far as it is known.
    """

    name: str
    read: Callable[[Path], Points]
    overrides: tuple[str, ...]
    held_out: dict[str, str]
    version: str


def closed_loop(backend: str) -> Callable[[Path], Points]:
    """Return what reads the closed-loop points of a backend."""
    return lambda data: read_points(_existing(data, CLOSED_LOOP), where={"backend": backend})


def batches(data: Path) -> Points:
    """Return the fixed batches of vLLM 0.8.5: TPOT where they decode, requests/s where they only prefill.

    While prompts of one answer token are computed, that is requests per step over the median time of a step,
    which leaves the client's start out. Two kinds of rows are left out: where all sequences do not fit the KV
    cache to their end, and where the steps were not recorded.
    """
    rows = read_runs(data, BATCHES, BATCH_COLUMNS).dropna(subset=["kv_tokens", "step_gap_p50_ms"])
    points = []
    for row in rows.itertuples():
        users, answer = int(row.max_num_seqs), int(row.output_len)
        prompt = round(row.tot_in / row.num_prompts)
        if users * (prompt + answer) > row.kv_tokens:
            continue
        per_step = row.num_prompts / row.n_steps
        measured = (
            {TPOT: row.mean_tpot_ms / 1e3}
            if answer > 1
            else {REQUESTS: per_step / (row.step_gap_p50_ms / 1e3)}
        )
        points.append(Point(int(row.Index) + 2, users, prompt, answer, 1, measured))
    return Points(BATCHES.name, points, ())


ENGINES = (
    Engine(
        "vllm-0.12",
        closed_loop("vllm"),
        # 1,024 sequences are what `vllm serve` has on an H100 unless it is told otherwise.
        ("model=qwen3-32b", "gpu=h100-sxm", "scheduler.max_num_seqs=1024"),
        {"tp": "4"},
        "0.12.0",
    ),
    Engine(
        "trtllm-1.0",
        closed_loop("trtllm"),
        ("model=llama3.1-8b", "gpu=h100-sxm"),
        {"isl": "2048"},
        "1.0.0rc3",
    ),
    Engine(
        "vllm-0.8",
        batches,
        (
            "model=llama3.1-8b",
            "gpu=h100-64gb",
            "scheduler.max_num_seqs=1000",
            "scheduler.max_num_batched_tokens=2048",
        ),
        {"concurrency": "200"},
        "0.8.5",
    ),
)


def fit_overheads(data: Path, out: Path = CONF / "engine_overhead") -> list[Path]:
    """Fit every engine of ENGINES, write its file, and return the files.

    Raises:
        SourceError: there are no runs.
    """
    written = []
    for engine in ENGINES:
        runs, scenario, source = runs_of(engine, data)
        path = out / f"{engine.name}.yaml"
        write_terms(fit_terms(runs, engine.name), scenario, source, split(engine), path)
        written.append(path)
    return written


def runs_of(engine: Engine, data: Path, jobs: int = -1) -> tuple[Runs, Scenario, str]:
    """Return the runs of an engine, simulated by so many processes, what they ran on, and their name."""
    points = engine.read(data)
    terms = (f"engine_overhead={engine.name}", f"engine_overhead.engine_version='{engine.version}'")
    scenarios = bases(points, [*engine.overrides, *terms, "cluster.replicas=1"], OWN_CONF)
    scenario = next(each for each in scenarios.values() if not isinstance(each, ConfigError))
    runs = of_points(points, scenarios, [TPOT, REQUESTS], engine.held_out, jobs=jobs)
    return runs, scenario, points.source


def split(engine: Engine) -> str:
    """Tell which runs are held out."""
    words = " ".join(f"{name} = {value}" for name, value in engine.held_out.items())
    return f"{words} held out, the others fitted"


def _existing(data: Path, file: Path) -> Path:
    path = data / file
    if not path.is_file():
        raise SourceError(f"{path}: there is no such file; --data names the folder that holds {file}")
    return path
