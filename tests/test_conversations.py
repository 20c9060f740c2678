"""Conversations end to end: their keys, what a run says of them, and what does not go with them."""

from __future__ import annotations

import pandas as pd
import pytest

import servesim
from servesim.check import ConfigError
from servesim.cli import main
from servesim.results.result import Result
from tests.screen.screens import printed_from, unwrapped

SMALL = (
    "model=llama3.1-8b",
    "cluster.replicas=1",
    "cluster.tensor_parallel_size=1",
    "calibration=roofline",
    "workload=sessions",
    "workload.sessions=40",
)


def printed(result: Result) -> str:
    return unwrapped(printed_from(result.summary))


def run(*overrides: str) -> Result:
    return servesim.run(servesim.load(*SMALL, *overrides))


@pytest.fixture(scope="module")
def agents() -> Result:
    return run("workload.tools.calls=2", "workload.max_context_tokens=4000", "steady=true")


def test_a_run_tells_how_sessions_went(agents: Result) -> None:
    said, requests = agents.summary["sessions"], agents.requests
    assert said["begun"] == 40 == said["completed"] + said["context_full"]
    assert (said["failed"], said["unfinished"]) == (0, 0)
    assert 0 < said["context_full"] < 40
    assert requests["session"].nunique() == 40
    each = requests.groupby("session")
    lasted = (requests.sent_s + requests.e2e_s).groupby(requests.session).max() - each.sent_s.min()
    assert said["duration_s"]["p50"] == pytest.approx(lasted.median())
    assert said["requests"]["mean"] == pytest.approx(each.size().mean())
    assert requests.input_tokens.max() <= 4000


def test_first_and_later_turns_are_told_apart(agents: Result) -> None:
    requests, said = agents.requests, agents.summary["sessions"]
    for name, rows in (
        ("first_turns", requests[requests.turn == 0]),
        ("later_turns", requests[requests.turn > 0]),
    ):
        assert said[name]["requests"] == len(rows)
        assert said[name]["input_tokens"] == pytest.approx(rows.input_tokens.mean())
        assert said[name]["cached_tokens"] == pytest.approx(rows.cached_tokens.mean())
        assert said[name]["ttft_s"] == pytest.approx(rows.ttft_s.mean())
    assert said["later_turns"]["cached_tokens"] > said["first_turns"]["cached_tokens"] > 0


def test_the_hit_rate_is_that_of_the_tokens_of_all_prompts(agents: Result) -> None:
    """What was not found was computed: nothing is preempted on an idle GPU."""
    prefill, requests = agents.summary["prefill"], agents.requests
    assert agents.summary["accounting"]["preemptions"] == 0
    assert prefill["computed_tokens"] + prefill["cached_tokens"] == requests.input_tokens.sum()
    assert prefill["hit_rate"] == requests.cached_tokens.sum() / requests.input_tokens.sum() > 0.5


def test_the_screen_tells_of_sessions_and_of_the_cache(agents: Result) -> None:
    text = printed(agents)
    early = agents.summary["sessions"]["context_full"]
    assert "sessions, poisson: 4 sessions/s x " in text
    assert f"40 begun = {40 - early} completed + {early} ended early + 0 failed + 0 unfinished" in text
    assert "of the tokens of prompts were found" in text
    assert f"{early} sessions ended early: the next prompt would have been too long" in text


def test_a_cluster_that_fills_with_sessions_is_not_judged_too_early() -> None:
    """Until 95% of the sessions would have been through, the requests under way grow under any load."""
    young = run("workload.sessions=null", "workload.requests=300", "workload.turns.turns=20")
    assert young.summary["saturated"] is None
    assert young.summary["utilisation"]["busy"] < 1


def test_prompts_of_sessions_are_computed_anew_without_a_cache(agents: Result) -> None:
    plain = run(
        "workload.tools.calls=2", "workload.max_context_tokens=4000", "scheduler.enable_prefix_caching=false"
    )
    columns = ["session", "turn", "input_tokens", "output_tokens"]
    same = [
        result.requests[columns].sort_values(columns[:2], ignore_index=True) for result in (agents, plain)
    ]
    pd.testing.assert_frame_equal(*same)
    assert plain.summary["prefill"]["cached_tokens"] == plain.summary["prefill"]["hit_rate"] == 0
    assert "Prefix cache" not in printed(plain)
    assert plain.summary["latency"]["ttft_s"]["mean"] > agents.summary["latency"]["ttft_s"]["mean"]


def test_a_warm_up_leaves_the_first_prompt_in_the_cache() -> None:
    cold, warm = (run("workload.sessions=1", f"client.num_warmups={count}") for count in (0, 2))
    assert [result.requests.cached_tokens[0] > 0 for result in (cold, warm)] == [False, True]
    assert warm.summary["accounting"]["warmup"] == 2


def test_what_does_not_go_with_conversations_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="max_concurrency = 3: does not go with sessions") as caught:
        servesim.load(*SMALL, "client.max_concurrency=3", "scheduler.max_num_seqs=0")
    assert "scheduler.max_num_seqs = 0" in str(caught.value)
    with pytest.raises(ConfigError, match=r"workload.tool_calls = 3: set workload.tools.calls"):
        servesim.load(*SMALL, "workload.tool_calls=3")
    with pytest.raises(ConfigError, match="system_prompt_tokens = 200000: must be below the 131072 of"):
        servesim.load(*SMALL, "workload.system_prompt_tokens=200000")
    with pytest.raises(ConfigError, match="system_prompt_tokens = 'many': must be a whole number"):
        servesim.load(*SMALL, "workload.system_prompt_tokens=many")
    assert main(["plan", "workload=sessions"]) == 1
    assert "sweep cluster.replicas instead" in capsys.readouterr().err


def test_users_of_a_closed_loop_hold_sessions() -> None:
    result = run("workload/arrivals=closed_loop", "workload.arrivals.concurrency=3", "workload.requests=50")
    assert len(result.requests) == 50
    assert result.summary["saturated"] is None
    assert result.summary["sessions"]["unfinished"] > 0
    assert "unfinished when the sending ended, most of them long" in printed(result)
