"""A measured run is of one server: what nobody says of it is one replica, and is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from servesim import load
from servesim.screen.replays import notes
from servesim.validate.compare import compare
from servesim.validate.readers import read
from servesim.validate.replay import base, replay
from servesim.validate.server import ASSUMED
from servesim.validate.simulated import observed
from tests.validate.runs import OVERRIDES, rows_of, served, small, vllm_result, write_csv, write_json

FULLY_SAID = ["model=llama3.1-8b", "gpu=h100-sxm", "cluster.replicas=3", "cluster.tensor_parallel_size=1"]


def taken(overrides: list[str]) -> str:
    return next((note for note in base(overrides).notes if note.startswith(ASSUMED)), "")


@pytest.mark.parametrize(
    ("overrides", "replicas"),
    [
        ([], 1),
        (["cluster.tensor_parallel_size=2"], 1),
        (["engine_args=--tensor-parallel-size 2"], 1),
        (["engine_args=--data-parallel-size 2"], 2),
        (["cluster.replicas=3"], 3),
        (["cluster=continuous"], load().cluster.replicas),
    ],
)
def test_there_is_one_replica_unless_something_says_otherwise(overrides: list[str], replicas: int) -> None:
    cluster: Any = base(overrides).cluster
    assert cluster.replicas == replicas
    assert ("cluster.replicas=1" in taken(overrides)) is (replicas == 1)


def test_what_nobody_says_of_the_server_is_told_and_nothing_else() -> None:
    assert taken(FULLY_SAID) == ""
    for left_out in FULLY_SAID:
        said = taken([each for each in FULLY_SAID if each != left_out])
        assert left_out.partition("=")[0] in said
        assert said.count("=") == 1
    assert "tensor_parallel_size" not in taken(["engine_args=--tensor-parallel-size 2"])


def test_pools_of_prefill_and_decode_stay_as_they_are_and_are_told() -> None:
    assert base(["scheduler=disaggregated"]).cluster == load("scheduler=disaggregated").cluster
    assert "cluster.prefill.replicas=1" in taken(["scheduler=disaggregated"])


def test_a_file_that_says_another_server_is_told(tmp_path: Path) -> None:
    result = served()
    said = {"num_gpus": 8, "tensor_parallel_size": "4", "model_id": "Qwen/Qwen3-32B"}
    run = read(write_json(tmp_path / "run.json", vllm_result(observed(result), **said)))
    found = list(notes([compare(run, result)]))
    assert "the file says 8 GPUs; 1 was simulated" in found
    assert "the file says tensor parallelism 4; 1 was simulated" in found
    assert "the file says the model Qwen/Qwen3-32B; llama3.1-8b was simulated" in found
    agreeing = {"num_gpus": 1, "tensor_parallel_size": 1, "model_id": "meta-llama/Meta-Llama-3.1-8B-Instruct"}
    run = read(write_json(tmp_path / "run.json", vllm_result(observed(result), **agreeing)))
    assert not [note for note in notes([compare(run, result)]) if note.startswith("the file says")]


def test_columns_in_which_all_rows_agree_say_the_server(tmp_path: Path) -> None:
    rows = [row | {"TP": 2, "gpus": 2 + n % 2} for n, row in enumerate(rows_of(small()))]
    run = read(write_csv(tmp_path / "run.csv", rows))
    assert (run.tensor_parallel_size, run.num_gpus) == (2, None)


def test_a_replay_has_the_notes_of_a_run() -> None:
    run = small(40)
    crowded = replace(run, sent_s=run.sent_s / 100, input_tokens=run.input_tokens * 40)
    small_cache = [*OVERRIDES, "scheduler.num_gpu_blocks_override=1100", "scheduler.max_model_len=17600"]
    found = list(notes([compare(crowded, replay(crowded, small_cache))]))
    assert any(note.startswith("step times are the datasheet's") for note in found)
    assert any("the KV cache (1,100 blocks per replica) was" in note for note in found)
    roomy = list(notes([compare(run, replay(run, OVERRIDES))]))
    assert not any("KV cache" in note for note in roomy)


def test_flags_of_an_engine_that_are_not_modelled_are_noted() -> None:
    run = small()
    flags = "engine_args=--tensor-parallel-size 1 --enable-prefix-caching --max-num-seqs 16"
    scenario = base(["model=llama3.1-8b", "calibration=roofline", flags])
    found = list(notes([compare(run, replay(run, ["model=llama3.1-8b", "calibration=roofline", flags]))]))
    said = [note for note in scenario.notes if note.startswith("engine_args")]
    assert said
    assert set(said) <= set(found)
