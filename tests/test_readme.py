"""What the README tells to type works, and its two commands are those of the Makefile and of CI."""

import json
import os
import re
import shlex
import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from servesim import ConfigError, load
from servesim.cli import main
from servesim.config.groups import Groups
from servesim.results import columns
from servesim.sweeps.table import FIRST, LAST, read_table
from tests.config.hf_configs import SHIPPED
from tests.dashboards import needs_dash, served
from tests.shared import ROOT
from tests.test_memory import LOG

README = (ROOT / "README.md").read_text()
SHELL = [line for block in re.findall(r"```bash\n(.*?)```", README, re.S) for line in block.splitlines()]
OWN_OPTIONS = re.findall(r"```yaml\n# (\S+)\n(.*?)```", README, re.S)
PYTHON = re.findall(r"```python\n(.*?)```", README, re.S)
RUN, TEST = SHELL[:2]
COMMANDS = [shlex.split(line)[1:] for line in SHELL[2:]]
SERVERS = [
    command for command in COMMANDS if command[0] == "dashboard"
]  # these run until they are told to end
EXAMPLES = [command for command in COMMANDS if command not in SERVERS]
TRACE = """\
TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,9
"""
REQUESTS = """\
arrival_s,input_tokens,output_tokens,ttft_ms,e2e_ms
0.0,374,44,31,420
0.4,396,109,33,980
0.5,879,55,45,530
"""
POINTS = """\
concurrency,tp,mean_ttft_ms,mean_tpot_ms,output_tok_s
1,1,40,8,120
8,1,90,9,800
8,2,60,6,1200
16,1,120,12,1300
4,1,60,8,450
2,1,50,8,240
8,4,50,5,1500
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("trace", TRACE), ("requests", REQUESTS), ("points", POINTS)):
        (tmp_path / f"{name}.csv").write_text(text)
    (tmp_path / "config.json").write_text(json.dumps(SHIPPED["llama3.1-8b"]))
    (tmp_path / "engine.log").write_text(LOG)
    for name, text in OWN_OPTIONS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_first_screen_has_two_commands_that_set_up_all_they_need() -> None:
    first_screen = "\n".join(README.splitlines()[:30])
    assert re.findall(r"```bash\n(.*)\n```", first_screen) == [RUN, TEST]
    assert (
        RUN == "python3.11 -m venv .venv && .venv/bin/pip install --quiet --editable . && .venv/bin/servesim"
    )
    assert TEST.startswith(
        "python3.11 -m venv .venv && .venv/bin/pip install --quiet --editable '.[test]' && "
    )


def test_ci_runs_the_same_test_command() -> None:
    assert f"\n{TEST} || failed=1\n" in (ROOT / ".ci" / "run").read_text()


def test_every_verb_of_the_makefile_is_told() -> None:
    verbs = re.search(r"\.PHONY: (.*)", (ROOT / "Makefile").read_text())
    assert verbs is not None
    assert all(f"`make {verb}`" in README for verb in verbs[1].split())


@pytest.mark.parametrize("arguments", EXAMPLES, ids=" ".join)
def test_every_example_runs(arguments: list[str]) -> None:
    if "runs/mine" in arguments:
        exec(PYTHON[0], {})  # which leaves it
    assert main(arguments) == 0


@needs_dash
@pytest.mark.parametrize("arguments", SERVERS, ids=" ".join)
def test_every_server_answers_and_ends(arguments: list[str]) -> None:
    with served(*arguments[1:]) as address, urllib.request.urlopen(address, timeout=30) as page:
        assert page.status == 200


def test_the_python_example_runs(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    exec(PYTHON[0], {})
    assert "request_id" in capsys.readouterr().out
    assert (here / "runs" / "mine" / "summary.json").is_file()


def test_the_router_of_ones_own_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "example"}
    exec(PYTHON[1], names)
    assert float(capsys.readouterr().out) > 0
    assert names["result"].requests["replica"].nunique() > 1
    assert names["result"].summary["scenario"]["router"]["kind"] == "two_choices"


def test_the_sweep_from_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(PYTHON[2], {})
    assert "latency.interactivity.p50\n" in capsys.readouterr().out


def test_the_study_of_ones_own_is_swept(here: Path) -> None:
    (name,) = [name for name, _ in OWN_OPTIONS if "/experiment/" in name]
    assert main(["--config-dir", Path(name).parts[0], f"experiment={Path(name).stem}", "seed=0"]) == 0
    table = read_table(here / "sweeps" / Path(name).stem)
    assert set(table["variant"]) == {"one", "two"}
    section = README.partition("## Sweep")[2].partition("\n## ")[0]
    assert [column for column in [*FIRST, *LAST] if f"`{column}`" not in section] == []


def test_the_gpu_of_ones_own_is_used() -> None:
    name = next(name for name, _ in OWN_OPTIONS if name.endswith("my-gpu.yaml"))
    gpu = load("gpu=my-gpu", config_dir=Path(name).parts[0]).gpu
    assert (gpu.name, gpu.usd_per_hour, gpu.max_w) == ("my-gpu", 2.5, load().gpu.max_w)


@pytest.mark.parametrize("schema", [columns.REQUESTS, columns.STEPS, columns.GAPS])
def test_every_column_of_a_run_is_told(schema: Any) -> None:
    section = README.partition("## What a run leaves")[2].partition("\n## ")[0]
    assert [name for name in schema.names if f"`{name}`" not in section] == []


def test_every_option_is_told() -> None:
    groups = Groups.of(None)
    table = dict(re.findall(r"^\| `([\w/]+)` \| (.*) \|$", README, re.M))
    assert set(table) == {
        "model",
        "gpu",
        "scheduler",
        "scheduler/queue_order",
        "scheduler/speculation",
        "scheduler/offload",
        "router",
        "admission",
        "client",
        "workload",
        "workload/arrivals",
        "workload/lengths",
        "workload/turns",
        "board_power",
        "slo",
    }
    for group, cell in table.items():
        assert {option for option in groups.options(group) if f"`{option}`" not in cell} == set()


def test_every_key_that_is_told_exists() -> None:
    keys = [
        "slo.ttft_s=1",
        "slo.tpot_s=1",
        "slo.e2e_s=1",
        "slo.attainment=1",
        "workload.requests=1",
        "seed=1",
    ]
    keys += re.findall(r"`((?:gpu|model)\.\w+=[\w.]+)`", README)
    scheduler = re.search(r"`(scheduler\.max_num_seqs.*)` \| as in vLLM", README)
    assert scheduler is not None
    names = re.findall(r"\.(\w+)`", f"{scheduler[1]}`")
    assert len(names) == 9
    assert main([*keys, "--cfg", "job"]) == 0
    with pytest.raises(ConfigError) as caught:
        load(*(f"scheduler.{name}=wrong" for name in names))
    assert all("unknown" not in problem.message for problem in caught.value.problems)
    assert len(caught.value.problems) == len(names)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "ending"), [(RUN, r"Files +runs/"), (f"{TEST} tests/test_check.py", r"\d+ passed")]
)
def test_the_two_commands_work_in_a_fresh_clone(command: str, ending: str, here: Path) -> None:
    clone = here / "clone"
    shutil.copytree(
        ROOT, clone, ignore=shutil.ignore_patterns(".git", ".venv", "runs", "__pycache__", ".*_cache")
    )
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        ["bash", "-c", command], cwd=clone, env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(ending, done.stdout)
