"""An engine by its flags: the same scenario as by keys, and nothing of a command line is lost."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import servesim
from servesim import ConfigError, load
from servesim.cli import main
from servesim.config.vllm.arguments import read_arguments
from servesim.config.vllm.flags import OPERATIONAL, REFUSED, RULES, TIMED, whole
from servesim.config.vllm.models import known_model
from servesim.scenario import Scenario
from servesim.sweeps.table import read_table
from tests.config.hf_configs import SHIPPED, write

#: Flags with values, and the keys that say the same.
SAME = {
    "--tensor-parallel-size 2": ["cluster.tensor_parallel_size=2"],
    "-tp 2": ["cluster.tensor_parallel_size=2"],
    "--max-num-seqs 64": ["scheduler.max_num_seqs=64"],
    "--max_num_seqs=64": ["scheduler.max_num_seqs=64"],
    "--max-num-batched-tokens 16k": ["scheduler.max_num_batched_tokens=16000"],
    "--max-num-batched-tokens 16K": ["scheduler.max_num_batched_tokens=16384"],
    "--max-model-len 32768": ["scheduler.max_model_len=32768"],
    "--max-model-len 25.6k": ["scheduler.max_model_len=25600"],
    "--max-model-len -1": ["scheduler.max_model_len=auto"],
    "--max-model-len=auto": ["scheduler.max_model_len=auto"],
    "--gpu-memory-utilization .85": ["scheduler.gpu_memory_utilization=0.85"],
    "--block-size 32": ["scheduler.block_size=32"],
    "--enable-chunked-prefill": ["scheduler.enable_chunked_prefill=true"],
    "--no-enable-chunked-prefill --max-model-len 8k": [
        "scheduler.enable_chunked_prefill=false",
        "scheduler.max_model_len=8000",
    ],
    """--speculative-config '{"method": "ngram", "num_speculative_tokens": 2}'""": [
        "scheduler/speculation=ngram",
        "scheduler.speculation.num_speculative_tokens=2",
    ],
    """--speculative-config '{"model": "meta-llama/Llama-3.1-8B-Instruct-FP8"}'""": [
        "scheduler/speculation=draft_model",
        "scheduler.speculation.model.weights_dtype=fp8",
    ],
    "--speculative-config.method ngram --speculative-config.num_speculative_tokens=2": [
        "scheduler/speculation=ngram",
        "scheduler.speculation.num_speculative_tokens=2",
    ],
    """--speculative-config {"method": "eagle", "model": "it's {one}"} --block-size 32""": [
        "scheduler/speculation=eagle",
        "scheduler.block_size=32",
    ],
    """-sc '{"method": "eagle3", "model": "owner/heads"}'""": ["scheduler/speculation=eagle3"],
    """-sc '{"method": "deepseek_mtp"}'""": ["scheduler/speculation=mtp"],
    "--kv-cache-dtype fp8_e4m3": ["scheduler.kv_cache_dtype=fp8"],
    "--kv-cache-dtype bfloat16": ["scheduler.kv_cache_dtype=bf16"],
    "--scheduling-policy priority": ["scheduler/queue_order=priority"],
    "--preemption-mode swap --swap-space 8": ["scheduler.preemption_mode=swap", "scheduler.swap_space=8"],
    "--kv-offloading-size 50": ["scheduler.offload.host.capacity=50"],
    "--num-gpu-blocks-override 9000": ["scheduler.num_gpu_blocks_override=9000"],
    "--quantization awq": ["model.weights_dtype=int4"],
    "-q fp8": ["model.weights_dtype=fp8"],
    "--data-parallel-size 4": ["cluster.replicas=4"],
    "--model Qwen/Qwen3-32B": ["model=qwen3-32b"],
    "vllm serve meta-llama/Llama-3.1-8B-Instruct": ["model=llama3.1-8b"],
    "--enable-prefix-caching RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic": ["model=llama3.1-70b"],
    "python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-32B-AWQ": [
        "model=qwen3-32b",
        "model.weights_dtype=int4",
    ],
}


def by_flags(text: str, *more: str) -> Scenario:
    return load(f"engine_args={text}", *more)


def same(one: Scenario, other: Scenario) -> bool:
    """Tell whether two scenarios differ in nothing but in what they say of flags."""
    values, others = one.as_dict(), other.as_dict()
    for said in (values, others):
        del said["engine_args"], said["notes"]
    return values == others


def faults(text: str, *more: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        by_flags(text, *more)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("text", SAME)
def test_a_flag_says_what_its_key_says(text: str) -> None:
    assert same(by_flags(text), load(*SAME[text]))


def test_no_flags_are_the_scenario_itself() -> None:
    assert same(by_flags(""), load())
    assert by_flags("").notes == ()


@given(
    st.lists(
        st.sampled_from(
            ["--tensor-parallel-size 2", "--max-num-seqs 64", "--block-size 32", "--max-model-len 4k"]
        ),
        unique=True,
    ),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_flags_may_come_in_any_order_and_spelling(texts: list[str], joined: bool, underscores: bool) -> None:
    written = []
    for text in texts:
        name, value = text.split()
        name = f"--{name[2:].replace('-', '_')}" if underscores else name
        written.append(f"{name}={value}" if joined else f"{name} {value}")
    keys = {"--max-model-len 4k": ["scheduler.max_model_len=4000"]} | SAME
    assert same(by_flags(" ".join(written)), load(*(key for text in texts for key in keys[text])))


@pytest.mark.parametrize("typed", ["scheduler/offload=store", "scheduler.offload.host.capacity=7"])
def test_an_option_or_a_part_that_is_typed_wins_over_the_flag_for_the_whole(typed: str) -> None:
    assert by_flags("--kv-offloading-size 50", typed).scheduler == load(typed).scheduler


@pytest.mark.parametrize(
    ("flags", "option", "typed"),
    [
        (
            """--speculative-config '{"method":"ngram","num_speculative_tokens":3}'""",
            ["scheduler/speculation=ngram", "scheduler.speculation.num_speculative_tokens=3"],
            "scheduler.speculation.acceptance=0.9",
        ),
        (
            "--scheduling-policy priority",
            ["scheduler/queue_order=priority"],
            "scheduler.queue_order.preempt=true",
        ),
    ],
)
def test_keys_that_are_typed_add_to_the_option_that_a_flag_chose(
    flags: str, option: list[str], typed: str
) -> None:
    own = by_flags(flags, typed)
    assert same(own, load(*option, typed))
    assert not any("acceptance" in note for note in own.notes)


def test_an_option_that_is_typed_wins_over_a_flag_that_is_not_modelled() -> None:
    typed = ["scheduler/speculation=draft_model", "scheduler.speculation.model=llama3.1-8b"]
    assert same(by_flags("""--speculative-config '{"model": "mine/own"}'""", *typed), load(*typed))


def test_what_is_typed_wins_wherever_it_stands() -> None:
    typed = "scheduler.max_num_seqs=7"
    flags = "engine_args=--max-num-seqs 64 --block-size 32 --model Qwen/Qwen3-32B"
    for overrides in ([flags, typed, "model=llama3.1-8b"], ["model=llama3.1-8b", typed, flags]):
        scenario = load(*overrides)
        assert scenario.scheduler.max_num_seqs == 7  # type: ignore[union-attr]
        assert scenario.scheduler.block_size == 32
        assert scenario.model.name == "llama3.1-8b"
        assert "engine_args outdone by the keys beside them: --model Qwen/Qwen3-32B, --max-num-seqs 64" in (
            scenario.notes
        )


def test_a_variable_of_a_shell_is_left_as_it_stands() -> None:
    scenario = by_flags("--api-key ${KEY} --max-num-seqs 8")
    assert scenario.engine_args == "--api-key ${KEY} --max-num-seqs 8"
    assert scenario.scheduler.max_num_seqs == 8  # type: ignore[union-attr]


def test_the_last_of_two_flags_of_a_name_counts() -> None:
    assert by_flags("--block-size 8 --block-size 32").scheduler.block_size == 32


def test_of_two_flags_that_differ_the_one_that_does_not_count_is_told() -> None:
    """vLLM's argparse takes the last one, too, of a switch and its opposite."""
    found = by_flags("--enable-prefix-caching --block-size 8 --block-size 8 --no-enable-prefix-caching")
    assert found.scheduler.enable_prefix_caching is False  # type: ignore[union-attr]
    assert [note for note in found.notes if "twice" in note] == [
        "engine_args say twice, of which the last counts: "
        "--enable-prefix-caching before --no-enable-prefix-caching"
    ]


@pytest.mark.parametrize("scheduler", ["continuous", "disaggregated"])
@pytest.mark.parametrize(
    ("text", "on"),
    [
        ("--no-enable-prefix-caching", False),
        ("--no-enable-prefix-caching=true", False),
        ("--enable-prefix-caching=false", False),
        ("--enable-prefix-caching False", False),
        ("--no-enable-prefix-caching --enable-prefix-caching", True),
        ("--enable-prefix-caching", True),
        ("enable-prefix-caching: no", False),
        ("enable_prefix_caching: 'false'", False),
        ("no-enable-prefix-caching: true", False),
        ("enable-prefix-caching: true", True),
    ],
)
def test_prefix_caching_is_switched_by_its_flag(text: str, on: bool, scheduler: str, tmp_path: Path) -> None:
    if not text.startswith("-"):
        (tmp_path / "vllm.yaml").write_text(text)
        text = str(tmp_path / "vllm.yaml")
    found = by_flags(text, f"scheduler={scheduler}")
    assert found.scheduler.enable_prefix_caching is on  # type: ignore[union-attr]
    assert not any("without effect" in note or "not modelled" in note for note in found.notes)


def test_prefix_caching_is_nothing_to_static_batching() -> None:
    found = by_flags("--no-enable-prefix-caching", "scheduler=static")
    assert found.notes == (
        "engine_args --no-enable-prefix-caching: without effect, as static batching caches no prefixes",
    )


@pytest.mark.parametrize("value", ["no", "1", "yes please"])
def test_a_switch_is_true_or_false(value: str) -> None:
    (fault,) = faults(f"--enable-prefix-caching='{value}'")
    assert "must be true or false" in fault


def test_a_key_that_a_file_repeats_is_told(tmp_path: Path) -> None:
    path = tmp_path / "vllm.yaml"
    path.write_text("max-num-seqs: 8\nblock-size: 32\nmax-num-seqs: 16\nblock_size: 64\n")
    found = by_flags(str(path))
    assert found.scheduler.max_num_seqs == 16  # type: ignore[union-attr]
    assert (
        f"engine_args say twice, of which the last counts: max-num-seqs in {path}, 2 times, "
        "--block-size 32 before --block-size 64"
    ) in found.notes


@pytest.mark.parametrize("text", ["--max-num-seqs 8 \\\n  --port 80", "  --max-num-seqs=8\n--port 80 "])
def test_a_command_line_of_several_lines_is_read(text: str) -> None:
    assert by_flags(text).scheduler.max_num_seqs == 8  # type: ignore[union-attr]


# ---- a file


def test_a_file_says_what_the_command_line_says(tmp_path: Path) -> None:
    said = {
        "model": "Qwen/Qwen3-32B",
        "tensor-parallel-size": 2,
        "max_num_seqs": 64,
        "max-model-len": "32k",
        "enable-chunked-prefill": True,
        "port": 8000,
        "seed": None,
        "compilation-config": {"mode": 3},
    }
    path = tmp_path / "vllm.yaml"
    path.write_text(yaml.safe_dump(said))
    keys = ["cluster.tensor_parallel_size=2", "scheduler.max_num_seqs=64", "scheduler.max_model_len=32000"]
    own = by_flags(str(path))
    assert same(own, load("model=qwen3-32b", *keys))
    assert any("--compilation-config" in note for note in own.notes)
    outdone = by_flags(f"--max-num-seqs 3 --config {path}")
    assert outdone.scheduler.max_num_seqs == 3  # type: ignore[union-attr]
    assert outdone.cluster.tensor_parallel_size == 2  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read: No such file"),
        ("[1", "is not YAML"),
        ("- 1", "is no configuration of vLLM"),
        ("max-num-seqs: [1, 2]", "must be a whole number"),
        ("max-num-seqs: true", "needs a value"),
        ("pipeline-parallel-size: 2", "pipeline parallelism is not modelled"),
    ],
)
def test_a_file_that_is_wrong_is_told(text: str | None, words: str, tmp_path: Path) -> None:
    path = tmp_path / "vllm.yaml"
    if text is not None:
        path.write_text(text)
    (fault,) = faults(str(path))
    assert fault.startswith("engine_args = ")
    assert words in fault


# ---- what is not modelled


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("--pipeline-parallel-size 2", "pipeline parallelism is not modelled in this version"),
        ("-pp 2", "pipeline parallelism"),
        ("--decode-context-parallel-size 2", "context parallelism"),
        ("""--speculative-config '{"method": "medusa"}'""", "method medusa is not modelled"),
        ("""--speculative-config '{"num_speculative_tokens": 3}'""", "needs a method"),
        ("""--speculative-config '{"model": "mine/own"}'""", "scheduler.speculation.model=NAME"),
        ("--speculative-config {method:ngram}", "must be JSON"),
        ("--speculative-config.method medusa", "method medusa is not modelled"),
        ("--num-speculative-tokens 5", "--speculative-config"),
        ("--hf-overrides '{\"a\": 1}'", "model.hf_config=PATH"),
        ("--kv-cache-memory-bytes 10G", "scheduler.num_gpu_blocks_override=N"),
        ("--kv-cache-dtype nvfp4", "modelled are auto, bfloat16"),
        ("--dtype float32", "16 bits or fewer"),
        ("--quantization bitsandbytes", "is not modelled"),
        ("--max-num-seq 64", "did you mean --max-num-seqs?"),
        ("--tensor-parallel 4", "did you mean --tensor-parallel-size?"),
        ("--max-num-seqs", "needs a value"),
        ("--max-num-seqs many", "must be a whole number"),
        ("--max-num-seqs 25.6K", "must be a whole number"),
        ("--gpu-memory-utilization most", "must be a number"),
        ("--enable-chunked-prefill=3", "must be true or false"),
        ("--data-parallel-size x", "must be a whole number"),
        ("--port 80 stray", ""),
        ("'--port 80", "is no command line"),
        ("--port 80 '--port 80'", "a name and its value are two words"),
        ("one/model --port 1 --seed=3 --block-size=8 other/model third", ""),
    ],
)
def test_what_cannot_be_simulated_is_refused_by_name(text: str, words: str) -> None:
    if words:
        (fault,) = faults(text)
        assert fault.startswith("engine_args = ")
        assert words in fault
    else:
        read = read_arguments(text)
        assert bool(read.problems) == ("third" in text)


def test_everything_wrong_is_listed_at_once_beside_the_rest() -> None:
    found = faults("-pp 2 --max-num-seqs x --dtype float32", "sed=1", "workload.requests=0")
    assert len(found) == 5
    assert sum(line.startswith("engine_args = ") for line in found) == 3


def test_a_value_out_of_bounds_names_the_flag() -> None:
    (fault,) = faults("--max-num-seqs 0")
    assert fault.startswith("scheduler.max_num_seqs = 0: must be at least 1")
    assert fault.endswith("(--max-num-seqs of engine_args)")


@pytest.mark.parametrize(
    "flag", ["--max-num-seqs 8", "--max-num-batched-tokens 8k", "--enable-chunked-prefill"]
)
def test_static_batching_refuses_what_it_has_not(flag: str) -> None:
    (fault,) = faults(flag, "scheduler=static")
    assert "static batching computes whole padded batches: set batch_size instead" in fault
    assert fault.endswith(f"({flag.split()[0]} of engine_args)")


@pytest.mark.parametrize("value", ["3", "[a]", "{a: 1}", "true"])
def test_flags_are_text(value: str) -> None:
    with pytest.raises(ConfigError):
        load(f"+engine_args={value}")


def test_flags_that_are_off_change_nothing() -> None:
    scenario = by_flags("-pp 1 --no-async-scheduling --kv-transfer-config=None")
    assert same(scenario, load())


def test_every_flag_is_told_once_by_what_it_does() -> None:
    text = (
        "--port 8000 --served-model-name a b --enforce-eager --max-num-seqs 64 --brand-new 3 "
        "--enable-prefix-caching"
    )
    assert by_flags(text).notes == (
        "engine_args set scheduler.max_num_seqs=64, scheduler.enable_prefix_caching=true",
        "engine_args not modelled, though they change times or memory: --enforce-eager",
        "engine_args without effect here: --port, --served-model-name",
        "engine_args not known here, and left out: --brand-new",
    )


def test_a_flag_is_known_in_each_spelling() -> None:
    for name in OPERATIONAL | TIMED | set(RULES) | set(REFUSED):
        for text in (f"--{name.replace('_', '-')}", f"--{name}", f"--{name}=x", f"--{name}.key x"):
            assert next(iter(read_arguments(text).flags)) == name


def test_a_flag_means_one_thing() -> None:
    names = [*OPERATIONAL, *TIMED, *RULES, *REFUSED]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("overrides", "note"),
    [
        (
            ["gpu=l40s"],
            "max_num_seqs=1024, max_num_batched_tokens=8192 as it is; vLLM's own on this GPU: 256, 2048",
        ),
        (["gpu=a100-sxm-80gb", "scheduler.max_num_seqs=1024"], "max_num_batched_tokens=8192 as it is"),
        (["gpu=h100-sxm"], None),
        (["gpu=l40s", "scheduler.max_num_seqs=8", "scheduler.max_num_batched_tokens=8192"], None),
        (["gpu=l40s", "scheduler=static"], None),
    ],
)
def test_what_vllm_would_choose_in_another_way_is_said(overrides: list[str], note: str | None) -> None:
    found = [text for text in by_flags("--block-size 16", *overrides).notes if "leave" in text]
    assert len(found) == (note is not None)
    assert all(note in text for text in found if note is not None)
    assert not any("leave" in text for text in load(*overrides).notes)


# ---- models


@pytest.mark.parametrize(
    ("name", "option", "dtype"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", "llama3.1-70b", "bf16"),
        ("meta-llama/Meta-Llama-3.1-405B", "llama3.1-405b", "bf16"),
        ("neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8", "llama3.1-8b", "fp8"),
        ("RedHatAI/Llama-3.3-70B-Instruct-quantized.w4a16", "llama3.1-70b", "int4"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama2-7b", "bf16"),
        ("codellama/CodeLlama-34b-Instruct-hf", "codellama-34b", "bf16"),
        ("Qwen/Qwen3-32B-FP8", "qwen3-32b", "fp8"),
    ],
)
def test_models_are_known_by_their_names_on_hugging_face(name: str, option: str, dtype: str) -> None:
    assert known_model(name) == (option, dtype)


@pytest.mark.parametrize(
    "name", ["meta-llama/Llama-3.2-1B", "Qwen/Qwen3-32B-mine", "x/qwen3-320b", "", "/", "gpt2"]
)
def test_other_models_are_not(name: str) -> None:
    assert known_model(name) is None


def test_a_model_that_does_not_ship_is_noted() -> None:
    (note,) = by_flags("--model gpt2").notes
    assert note == (
        "engine_args: --model gpt2 is no model that ships: model=NAME or model.hf_config=PATH says which it "
        "is; here it is llama3.1-70b"
    )


def test_a_model_on_disk_is_read(tmp_path: Path) -> None:
    write(tmp_path / "mine", SHIPPED["llama3.1-8b"])
    for text in (str(tmp_path / "mine"), f"x/y --hf-config-path {tmp_path / 'mine'}"):
        scenario = by_flags(text, "cluster.tensor_parallel_size=1")
        assert (scenario.model.parameters, scenario.model.weights_dtype) == (8_030_261_248, "bf16")
    fp8 = by_flags(f"{tmp_path / 'mine'} -q fp8", "cluster.tensor_parallel_size=1")
    assert fp8.model.weights_dtype == "fp8"


def test_both_pools_are_such_engines() -> None:
    scenario = by_flags("-tp 2 -dp 3 --max-num-seqs 8", "scheduler=disaggregated")
    pools = scenario.cluster
    assert pools.prefill.tensor_parallel_size == pools.decode.tensor_parallel_size == 2  # type: ignore[union-attr]
    assert any("-dp 3 is left out: cluster.prefill.replicas" in note for note in scenario.notes)


# ---- numbers


@given(st.integers(0, 10**6), st.sampled_from("kmgt"))
def test_small_letters_are_thousands_and_large_ones_1024s(count: int, letter: str) -> None:
    power = "kmgt".index(letter) + 1
    assert whole(f"{count}{letter}") == count * 1000**power
    assert whole(f"{count}{letter.upper()}") == count * 1024**power
    assert whole(str(count)) == whole(count) == count


@given(st.text(max_size=40))
@settings(max_examples=200)
def test_whatever_is_written_is_flags_or_problems(text: str) -> None:
    read = read_arguments(text)
    assert all(str(problem).startswith("engine_args = ") for problem in read.problems)
    assert all(name == flag.name for name, flag in read.flags.items())


# ---- on the command line, in sweeps and in results


SMALL = ["model=llama3.1-8b", "cluster.replicas=1", "cluster.tensor_parallel_size=1", "workload.requests=20"]
TEXT = """--max-num-seqs 8 --compilation-config '{"mode": 3, "sizes": [1, 2]}' --served-model-name it\\'s"""


def test_notes_reach_screen_and_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    assert main([f"engine_args={TEXT}", *SMALL]) == 0
    assert "they change times or memory: --compilation-config" in capsys.readouterr().out
    (path,) = tmp_path.glob("runs/*/summary.json")
    scenario = json.loads(path.read_text())["scenario"]
    assert scenario["engine_args"] == TEXT
    assert scenario["notes"][0] == "engine_args set scheduler.max_num_seqs=8"


def test_several_engines_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["-m", *SMALL, "engine_args=--max-num-seqs 8,--max-num-seqs 16 --port 3"]) == 0
    out = capsys.readouterr().out
    found = [
        json.loads(path.read_text())["scenario"] for path in sorted(tmp_path.glob("runs/*/*/summary.json"))
    ]
    assert [one["scheduler"]["max_num_seqs"] for one in found] == [8, 16]
    assert "engine_args without effect here: --port" in out


def test_a_sweep_has_engines_as_variants_and_as_an_axis_and_its_commands_run_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    variants = {"plain": [], "flags": [f"engine_args={TEXT}"]}
    swept = servesim.sweep(SMALL, variants=variants, n_jobs=1, folder=tmp_path / "one")
    axis = servesim.sweep(SMALL, axes=["engine_args=--max-num-seqs 4,--max-num-seqs 8 --port 3"], n_jobs=1)
    assert list(swept["scenario.scheduler.max_num_seqs"]) == [1024, 8]
    assert list(axis["scenario.scheduler.max_num_seqs"]) == [4, 8]
    assert list(axis["engine_args"]) == ["--max-num-seqs 4", "--max-num-seqs 8 --port 3"]
    for number, command in enumerate([swept["command"].iloc[1], axis["command"].iloc[1]]):
        folder = tmp_path / str(number)
        assert main([*shlex.split(command)[1:], f"hydra.run.dir={folder}"]) == 0
        own = json.loads((folder / "summary.json").read_text())["scenario"]
        assert own["scheduler"]["max_num_seqs"] == 8


def test_a_sweep_that_is_finished_runs_again_when_its_file_of_flags_changes(tmp_path: Path) -> None:
    path = tmp_path / "vllm.yaml"
    counts: list[Any] = []
    for sequences in (8, 8, 4):
        path.write_text(f"max-num-seqs: {sequences}\n")
        servesim.sweep([*SMALL, f"engine_args={path}"], n_jobs=1, folder=tmp_path / "swept")
        table = read_table(tmp_path / "swept")
        counts.append(int(table["scenario.scheduler.max_num_seqs"].iloc[0]))
    assert counts == [8, 8, 4]


def test_a_run_is_read_back_with_its_flags(tmp_path: Path) -> None:
    from servesim.config.saved import saved_deployments

    scenario = by_flags("--max-num-seqs 8 --port 3", *SMALL)
    (pool,) = saved_deployments(scenario.as_dict())
    assert pool.sheet == scenario.deployments()[0].sheet
