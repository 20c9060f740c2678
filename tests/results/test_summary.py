"""The summary of runs small enough to be worked out with a pencil."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.cost.power import BoardPower
from servesim.engine.log import COMPLETED, DROPPED, PROMPT_TOO_LONG, RUNNING
from servesim.results.pricing import Pricing
from servesim.results.records import Records
from servesim.results.result import Result
from servesim.results.slo import Slo
from servesim.results.summary import plain
from servesim.results.usage import Usage
from tests.results.made import facts, pool, records, request, step, summary, waiting
from tests.shared import ROOT

KEYS = [
    "scenario",
    "traffic",
    "accounting",
    "prefill",
    "duration_s",
    "warmup_cut_s",
    "window_s",
    "settled",
    "saturated",
    "overloaded",
    "latency",
    "breakdown_s",
    "throughput",
    "goodput",
    "speculation",
    "utilisation",
    "replicas",
    "memory",
    "transfer",
    "offload",
    "swap",
    "cost",
    "energy",
    "calibration",
    "simulator",
]


PREFILL = {"sequences": 2, "decodes": 0, "prefill_tokens": 10, "context_tokens": 10, "pairs": 31}


def two_requests(folder: Path | None = None) -> Records:
    """Return the run of two requests sent at 1 s: 4 tokens in and 3 out, 6 in and 2 out.

    Their prefill takes 0.5 s and emits both first tokens; 0.25 s later the second one finishes, 0.125 s
    later the first. The steps do 10 + 31, 2 + 12 and 1 + 6 FLOPs and move 13, 15 and 8 bytes.
    """
    requests = [
        request(1.0, 1.5, 1.75, request_id=1, input_tokens=6, output_tokens=2),
        request(1.0, 1.5, 1.875, request_id=0, input_tokens=4, output_tokens=3, preemptions=2),
    ]
    steps = [
        step(1.0, 0.5, **PREFILL, kv_blocks=3, kv_blocks_last=3),
        step(1.5, 0.25, sequences=2, decodes=2, context_tokens=12, pairs=12, kv_blocks=3, kv_blocks_last=4),
        step(1.75, 0.125, context_tokens=6, pairs=6, kv_blocks=2, kv_blocks_last=2),
    ]
    return records(requests, steps, folder=folder)


@pytest.fixture(scope="module")
def small() -> dict[str, Any]:
    return summary(two_requests())


def test_the_summary_has_the_keys_of_the_design_in_their_order(small: dict[str, Any]) -> None:
    assert list(small) == KEYS
    assert small["scenario"] == {"seed": 0}
    assert small["warmup_cut_s"] is None
    assert small["calibration"] == {
        "name": "roofline",
        "calibrated": None,
        "interpolated": None,
        "extrapolated": None,
        "operations": None,
    }


def test_latency_of_the_small_run(small: dict[str, Any]) -> None:
    """TPOT: (0.875 - 0.5) / 2 and (0.75 - 0.5) / 1; ITL pools the gaps 0.25, 0.25, 0.125."""
    latency = small["latency"]
    assert small["duration_s"] == 0.875
    assert {name: (x["n"], x["mean"]) for name, x in latency.items()} == {
        "ttft_s": (2, 0.5),
        "tpot_s": (2, 0.21875),
        "itl_s": (3, pytest.approx(0.625 / 3)),
        "e2e_s": (2, 0.8125),
        "client_queue_s": (2, 0.0),
        "user_e2e_s": (2, 0.8125),
        "interactivity": (2, pytest.approx((4 + 1 / 0.1875) / 2)),
    }
    assert latency["itl_s"]["p25"] == pytest.approx(0.1875)
    assert latency["e2e_s"]["std"] == 0.0625
    assert small["breakdown_s"] == {
        "routing": 0.0,
        "queue": 0.0,
        "prefill": 0.5,
        "preempted": 0.0,
        "transfer": 0.0,
        "decode_queue": 0.0,
        "decode": 0.3125,
    }


def test_throughput_and_goodput_of_the_small_run(small: dict[str, Any]) -> None:
    """10 tokens in and 5 out over 0.875 s on two GPUs; the TPOT limit of 0.1875 s is met by one, exactly."""
    assert small["throughput"] == {
        "requests_per_s": 2 / 0.875,
        "input_tokens_per_s": 10 / 0.875,
        "output_tokens_per_s": 5 / 0.875,
        "total_tokens_per_s": 15 / 0.875,
        "requests_per_s_per_gpu": 1 / 0.875,
        "input_tokens_per_s_per_gpu": 5 / 0.875,
        "output_tokens_per_s_per_gpu": 2.5 / 0.875,
        "total_tokens_per_s_per_gpu": 7.5 / 0.875,
        "roles": None,
    }
    assert small["goodput"] == {
        "limits": {"ttft_s": 0.5, "tpot_s": 0.1875, "e2e_s": None},
        "target": 0.99,
        "judged": 2,
        "cut": 0,
        "attainment": 0.5,
        "met": False,
        "requests_per_s": 1 / 0.875,
        "requests_per_s_per_gpu": 0.5 / 0.875,
    }


def test_utilisation_of_the_small_run(small: dict[str, Any]) -> None:
    """62 FLOPs and 36 bytes in 2 GPUs x 0.875 s; 3, 3.5 and 2 of 8 blocks in 0.5, 0.25 and 0.125 s."""
    assert small["utilisation"] == {
        "compute": pytest.approx(62 / 1750),
        "bandwidth": pytest.approx(36 / 175),
        "kv_cache": 0.375,
        "busy": 1.0,
        "roles": None,
    }
    assert small["memory"]["serve"]["kv_blocks"] == 8
    assert small["memory"]["serve"]["weights_bytes"] == 500


def test_a_pool_is_not_busy_for_longer_than_the_run() -> None:
    used = Usage(pool(), BoardPower(), 1000.0, busy_s=1.0000000000000002)
    assert used.shares(1.0)["busy"] == 1.0


def test_cost_and_energy_of_the_small_run(small: dict[str, Any]) -> None:
    """Two GPUs at $3.6/h for 0.875 s; shares of 0.171, 0.328 and 0.348 draw 134.2, 165.6 and 169.6 W."""
    assert small["cost"] == {
        "gpu_hours": pytest.approx(1.75 / 3600),
        "usd": pytest.approx(0.00175),
        "usd_per_million_output_tokens": pytest.approx(350),
        "usd_per_million_total_tokens": pytest.approx(350 / 3),
        "usd_per_request": pytest.approx(0.000875),
        "usd_per_good_request": pytest.approx(0.00175),
    }
    joules = 2 * (134.2 * 0.5 + 165.6 * 0.25 + 169.6 * 0.125)
    assert small["energy"]["joules"] == pytest.approx(joules)
    assert small["energy"]["joules_per_output_token"] == pytest.approx(joules / 5)
    assert small["energy"]["power_weights"] == {"compute": 1.0, "bandwidth": 1.0, "source": "assumed"}


def test_heavier_weights_of_board_power() -> None:
    """Twice the shares, of 0.171, 0.328 and 0.348, lift 100 W by 68.4, 131.2 and 139.2."""
    got = summary(two_requests(), board_power=BoardPower("mine", 2.0, 2.0))["energy"]
    assert got["joules"] == pytest.approx(2 * (168.4 * 0.5 + 231.2 * 0.25 + 239.2 * 0.125))
    assert got["power_weights"] == {"compute": 2.0, "bandwidth": 2.0, "source": "mine"}


def test_the_identity_of_cost_and_throughput_holds(small: dict[str, Any]) -> None:
    """$ per million tokens = $/GPU-hour / (tokens/s/GPU x 3600) x 1e6."""
    rate = small["throughput"]["output_tokens_per_s_per_gpu"]
    assert small["cost"]["usd_per_million_output_tokens"] == pytest.approx(3.6 / (rate * 3600) * 1e6)


def test_prefill_of_the_small_run(small: dict[str, Any]) -> None:
    """10 tokens of prompts in one step, and nothing cached; then 12 in two steps, and 16 cached, twice."""
    nothing = {"cached_tokens": 0, "recovered_tokens": 0, "evicted_blocks": 0, "hit_rate": 0.0}
    assert small["prefill"] == {"computed_tokens": 10, **nothing}
    steps = [step(1.0, 0.5, **PREFILL), step(1.5, 0.5, sequences=2, prefill_tokens=1, steps=2)]
    twice = request(1.0, 2.0, 2.5, input_tokens=20, cached_tokens=32, recovered_tokens=16, preemptions=1)
    made = records([request(1.0, 2.0, 2.5, input_tokens=20), twice, waiting(1.0)], steps)
    found = {"cached_tokens": 32, "recovered_tokens": 16, "evicted_blocks": 0, "hit_rate": 16 / 40}
    assert summary(made)["prefill"] == {"computed_tokens": 12, **found}


def test_accounting_of_the_small_run() -> None:
    known = facts(2, warmup=5, not_sent=3, length_capped=1, zero_output_rows=4, events=9, horizon_s=100.0)
    got = summary(two_requests(), facts=known)
    assert got["accounting"] == {
        "warmup": 5,
        "injected": 2,
        "completed": 2,
        "dropped": {},
        "timed_out": 0,
        "running": 0,
        "queued": 0,
        "retries": 0,
        "retries_pending": 0,
        "given_up": 0,
        "success": 1.0,
        "client_queued": 0,
        "not_sent": 3,
        "length_capped": 1,
        "zero_output_rows": 4,
        "preemptions": 2,
        "clean": True,
    }
    assert got["duration_s"] == 0.875  # the horizon cut nothing
    assert got["simulator"]["events"] == 9
    assert got["simulator"]["steps"] == 3
    assert got["simulator"]["cpu_s"] > 0
    assert got["simulator"]["peak_memory_bytes"] > 1e7


def test_a_lost_request_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="3 requests were injected, but 2"):
        summary(two_requests(), facts=facts(3))


def test_idle_gpus_draw_idle_power_and_are_paid_for() -> None:
    """One step of 1 s in a run of 4 s on two replicas: 2 of 16 GPU seconds in a step that does nothing."""
    pools = [pool(replicas=2)]
    made = records([request(0.0, 4.0, 4.0, output_tokens=1)], [step(3.0, 1.0, sequences=0)], pools=pools)
    got = summary(made, pools)
    assert got["utilisation"]["busy"] == 1 / 8
    assert got["cost"]["usd"] == pytest.approx(16 / 3600 * 3.6)
    bandwidth = 1 / 200  # one byte of that step, of 200 in a second on two GPUs
    assert got["energy"]["joules"] == pytest.approx(16 * 100 + 2 * 200 * bandwidth)


def test_two_pools_have_figures_of_their_own() -> None:
    """A prefill replica busy for 1 of 4 s and two decode replicas busy for 2 of 8; GPUs 2 and 4.

    The prefill computes 8 tokens; the decode steps a token each, and the second a pair.
    """
    pools = [pool("prefill"), pool("decode", first_replica=1, replicas=2)]
    steps = [step(0.0, 1.0, decodes=0, prefill_tokens=8), step(1.0, 1.0, replica=1, steps=2)]
    made = records([request(0.0, 1.0, 4.0, input_tokens=8, output_tokens=5)], steps, pools=pools)
    got = summary(made, pools)
    assert {role: shares["busy"] for role, shares in got["utilisation"]["roles"].items()} == {
        "prefill": 0.25,
        "decode": 0.25,
    }
    assert got["utilisation"]["roles"]["prefill"]["compute"] == 8 / (2 * 4 * 1000)
    assert got["utilisation"]["compute"] == pytest.approx((8 + 3) / (6 * 4 * 1000))
    assert got["simulator"]["steps"] == 3
    assert got["throughput"]["roles"] == {
        "prefill": {"requests_per_s_per_gpu": 0.125, "input_tokens_per_s_per_gpu": 1.0},
        "decode": {"requests_per_s_per_gpu": 0.0625, "output_tokens_per_s_per_gpu": 0.3125},
    }
    assert set(got["memory"]) == {"prefill", "decode"}


def test_the_objective_is_met_at_its_very_attainment() -> None:
    """One of two is good, and half are to be."""
    got = summary(two_requests(), slo=Slo(tpot_s=0.1875, attainment=0.5))
    assert got["goodput"]["met"] is True


def test_traffic_is_what_was_asked_whatever_became_of_it() -> None:
    """Four requests at 0, 1, 2 and 3 s, of which one is refused and one still waits: one a second."""
    rows = [
        request(0.0, 0.5, 1.0, input_tokens=10, output_tokens=4),
        request(1.0, 1.5, 2.0, input_tokens=20, output_tokens=4),
        waiting(2.0, status=DROPPED, reason=PROMPT_TOO_LONG, input_tokens=70, output_tokens=8),
        waiting(3.0, input_tokens=20, output_tokens=8),
    ]
    got = summary(records(rows), facts=facts(4, horizon_s=4.0))
    asked = {"requests": 4, "offered_per_s": 1.0, "input_tokens": 30.0, "output_tokens": 6.0}
    assert got["traffic"] == asked


def test_a_price_of_ones_own_holds_for_every_gpu() -> None:
    got = summary(two_requests(), pricing=Pricing(usd_per_gpu_hour=7.2))
    assert got["cost"]["usd"] == pytest.approx(0.0035)


def test_without_limits_there_is_no_goodput() -> None:
    got = summary(two_requests(), slo=Slo())
    assert [got["goodput"][name] for name in ("attainment", "met", "requests_per_s")] == [None] * 3
    assert got["cost"]["usd_per_good_request"] is None


# ---- what is left out, left over or refused


def test_a_horizon_leaves_requests_over() -> None:
    """One completed at 2 s, one runs, one waits at the horizon of 5 s: the run lasted until then.

    Five tokens left in its 4 s: two first ones, one at 2 s, and two of the request that still runs.
    """
    rows = [request(1.0, 1.5, 2.0), request(1.0, 3.0, status=RUNNING, generated=3), waiting(4.0)]
    steps = [step(1.5, 0.5), step(3.0, 0.5, steps=2)]
    got = summary(records(rows, steps), facts=facts(3, horizon_s=5.0, not_sent=2))
    ends = got["accounting"]
    assert [ends[end] for end in ("completed", "running", "queued", "not_sent")] == [1, 1, 1, 2]
    assert ends["clean"] is False
    assert got["duration_s"] == 4.0
    assert got["latency"]["ttft_s"]["n"] == 1
    assert got["throughput"]["output_tokens_per_s"] == 1.25
    assert got["throughput"]["requests_per_s"] == 0.25
    assert got["goodput"]["attainment"] == 0.0  # its TPOT of 0.5 s is over the limit
    assert got["goodput"]["cut"] == 2


def test_dropped_requests_count_as_injected() -> None:
    """A good request and one refused a second after the last response: half are good, over 3 s."""
    rows = [
        request(0.0, 0.5, 2.0, output_tokens=1),
        waiting(3.0, status=DROPPED, reason=PROMPT_TOO_LONG),
    ]
    got = summary(records(rows))
    assert got["accounting"]["dropped"] == {"prompt_too_long": 1}
    assert got["accounting"]["clean"] is False
    assert got["goodput"]["attainment"] == 0.5
    assert got["duration_s"] == 3.0


def test_a_run_in_which_everything_is_dropped_has_nothing_to_say() -> None:
    rows = [waiting(2.0, status=DROPPED, reason=PROMPT_TOO_LONG) for _ in range(3)]
    got = summary(records(rows))
    assert got["accounting"]["dropped"] == {"prompt_too_long": 3}
    assert got["duration_s"] == 0.0
    assert got["goodput"]["attainment"] == 0.0
    assert got["latency"]["e2e_s"] == {"n": 0} | dict.fromkeys(list(got["latency"]["e2e_s"])[1:])
    assert set(got["breakdown_s"].values()) == {None}
    assert got["throughput"]["requests_per_s"] is None
    assert got["utilisation"]["busy"] is None
    assert got["cost"]["usd"] == 0.0
    assert got["cost"]["usd_per_request"] is None


@pytest.mark.parametrize("steady", [False, True])
def test_an_empty_run_has_nothing_to_say(steady: bool) -> None:
    got = summary(records([]), steady=steady)
    assert got["accounting"]["injected"] == 0
    assert got["accounting"]["clean"] is True
    assert [got[name] for name in ("duration_s", "warmup_cut_s", "window_s", "saturated")] == [None] * 4
    assert got["throughput"]["output_tokens_per_s"] is None
    assert got["energy"]["joules_per_output_token"] is None
    json.dumps(got, allow_nan=False)


def test_one_request_of_one_token() -> None:
    """It has no TPOT and no gap, and a TPOT of 0 for the SLO."""
    got = summary(records([request(3.0, 3.25, 3.25, output_tokens=1)]))
    assert [got["latency"][name]["n"] for name in ("ttft_s", "tpot_s", "itl_s", "interactivity")] == [
        1,
        0,
        0,
        0,
    ]
    assert got["goodput"]["attainment"] == 1.0
    assert got["goodput"]["met"] is True
    assert got["duration_s"] == 0.25


def test_what_the_client_holds_back_at_the_horizon_was_asked_for() -> None:
    """Two good requests of 0 s and 1 s, and two due at 2 s and 3 s that were never sent: half are good.

    Four requests in 3 s are offered; tokens are those of the two that were sent.
    """
    rows = [request(float(i), i + 0.1, i + 0.2, input_tokens=10, output_tokens=4) for i in range(2)]
    got = summary(records(rows), facts=facts(2, horizon_s=4.0, held_due_s=(2.0, 3.0)))
    assert got["traffic"] == {
        "requests": 4,
        "offered_per_s": 1.0,
        "input_tokens": 10.0,
        "output_tokens": 4.0,
    }
    assert (got["accounting"]["injected"], got["accounting"]["client_queued"]) == (2, 2)
    assert got["accounting"]["clean"] is False
    goodput = got["goodput"]
    assert (goodput["judged"], goodput["cut"], goodput["attainment"]) == (4, 2, 0.5)
    assert goodput["requests_per_s"] == got["throughput"]["requests_per_s"] == 2 / 1.2


LIVES = st.tuples(
    st.floats(0.0, 20.0),
    st.floats(0.01, 5.0),
    st.floats(0.0, 10.0),
    st.sampled_from((COMPLETED, RUNNING, None)),
)


@given(st.lists(LIVES, min_size=1, max_size=40), st.booleans(), st.floats(0.1, 8.0))
def test_goodput_is_never_above_throughput_and_attainment_never_above_1(
    lives: list[tuple[float, float, float, int | None]], steady: bool, limit_s: float
) -> None:
    """Whatever ended in the window, of a whole run, a cut one or a steady part, and was sent before it."""
    rows = [
        waiting(sent_s, request_id=number)
        if status is None
        else request(sent_s, sent_s + ttft_s, sent_s + ttft_s + rest_s, request_id=number)
        if status == COMPLETED
        else request(sent_s, sent_s + ttft_s, status=RUNNING, generated=1, request_id=number)
        for number, (sent_s, ttft_s, rest_s, status) in enumerate(lives)
    ]
    got = summary(
        records(rows), facts=facts(len(rows), horizon_s=36.0), steady=steady, slo=Slo(ttft_s=limit_s)
    )
    good, done = got["goodput"], got["throughput"]["requests_per_s"]
    assert good["attainment"] is None or 0 <= good["attainment"] <= 1
    assert (good["requests_per_s"] is None) == (done is None)
    assert done is None or 0 <= good["requests_per_s"] <= done
    everything = summary(
        records(rows), facts=facts(len(rows), horizon_s=36.0), steady=steady, slo=Slo(e2e_s=99)
    )
    assert everything["goodput"]["requests_per_s"] == everything["throughput"]["requests_per_s"]


# ---- steady


def ten_requests() -> Records:
    """Return ten requests sent at 0, 1, ..., 9 s, each with a token after 0.25 s and after 0.5 s."""
    rows = [request(float(i), i + 0.25, i + 0.5, request_id=i) for i in range(10)]
    steps = [
        leap
        for i in range(10)
        for leap in (step(float(i), 0.25, decodes=0, prefill_tokens=4), step(i + 0.25, 0.25))
    ]
    return records(rows, steps)


def test_a_steady_summary_counts_what_was_emitted_in_its_window() -> None:
    """The first request is done before 1 s. From then to the last send at 9 s eight are served whole.

    These are 16 tokens, 8 gaps and 32 tokens in.
    """
    got = summary(ten_requests(), steady=True)
    assert (got["warmup_cut_s"], got["window_s"], got["duration_s"]) == (1.0, 8.0, 9.5)
    assert got["settled"] is True
    assert got["throughput"]["output_tokens_per_s"] == 2.0
    assert got["throughput"]["input_tokens_per_s"] == 4.0
    assert got["throughput"]["requests_per_s"] == 1.0
    assert got["latency"]["itl_s"]["n"] == 8
    assert got["latency"]["ttft_s"]["n"] == 9  # sent in the window, the last one included
    assert got["goodput"]["attainment"] == 0.0  # TPOT 0.25
    assert got["utilisation"]["busy"] == 0.5
    assert got["cost"]["gpu_hours"] == pytest.approx(16 / 3600)
    assert got["saturated"] is None  # too few to tell


def test_a_prompt_counts_when_it_has_been_read_and_a_request_when_it_is_done() -> None:
    """From 1 s to 5 s only the second one's prompt is read, at 2 s; it is done past the window."""
    rows = [request(0.0, 0.25, 0.5), request(1.0, 2.0, 12.0, input_tokens=8), request(5.0, 5.25, 5.5)]
    got = summary(records(rows), steady=True)
    assert (got["warmup_cut_s"], got["window_s"]) == (1.0, 4.0)
    assert got["throughput"]["input_tokens_per_s"] == 2.0
    assert got["throughput"]["requests_per_s"] == 0.0


def test_a_steady_summary_leaves_out_the_warm_up() -> None:
    """TTFT is 8 s for the first 20 of 100 requests and 1 s for the others; all of them are good enough.

    From 20 s to 99 s those end that were sent from 12 s to 90 s.
    """
    rows = [request(float(i), i + (8.0 if i < 20 else 1.0), i + 9.0, request_id=i) for i in range(100)]
    got = summary(records(rows), steady=True, slo=Slo(e2e_s=9.0))
    assert got["warmup_cut_s"] == 20.0
    assert got["goodput"]["attainment"] == 1.0
    assert got["goodput"]["judged"] == 80
    assert got["goodput"]["requests_per_s"] == got["throughput"]["requests_per_s"] == 1.0
    assert got["latency"]["ttft_s"]["max"] == 1.0
    assert got["latency"]["ttft_s"]["n"] == 80
    assert summary(records(rows))["latency"]["ttft_s"]["max"] == 8.0


def test_a_closed_loop_is_not_saturated_nor_is_it_not() -> None:
    assert summary(ten_requests(), facts=facts(10, open_loop=False))["saturated"] is None


# ---- the folder


def test_a_run_folder_is_complete_and_the_same_every_time(tmp_path: Path) -> None:
    """Saved from memory or written as the run went, all bytes agree but for the block `simulator`."""
    for name in ("saved", "written"):
        folder = tmp_path / name
        folder.mkdir()
        made = two_requests(folder if name == "written" else None)
        Result(summary(made), made).save(folder)
    names = {"requests.parquet", "steps.parquet", "gaps.parquet", "summary.json", "config.yaml"}
    assert {path.name for path in (tmp_path / "saved").iterdir()} == names
    for name in names - {"summary.json"}:
        assert (tmp_path / "saved" / name).read_bytes() == (tmp_path / "written" / name).read_bytes()
    one, other = ((tmp_path / name / "summary.json").read_text() for name in ("saved", "written"))
    assert one.partition('"simulator"')[0] == other.partition('"simulator"')[0]
    assert list(json.loads(one)) == KEYS


def test_frames_hold_the_files() -> None:
    made = two_requests()
    result = Result(summary(made), made)
    assert result.requests["e2e_s"].tolist() == [0.75, 0.875]
    assert result.requests["status"].eq("completed").all()
    assert result.requests["replica"].tolist() == [0, 0]
    assert result.requests["prefill_replica"].isna().all()
    assert result.steps["flops"].sum() == 62
    assert len(result.gaps) == 0


def test_what_json_cannot_say_is_null() -> None:
    got = plain({"a": float("nan"), "b": [float("inf"), 1.5], 3: True})
    assert got == {"a": None, "b": [None, 1.5], "3": True}


def test_neither_pandas_nor_scipy_is_imported_for_a_summary(tmp_path: Path) -> None:
    code = f"""
import pathlib, sys
from servesim.results.result import Result
from tests.results.made import records, request, step, summary
made = records([request(0.0, 1.0, 2.0)], [step(1.0, 1.0)], folder=pathlib.Path({str(tmp_path)!r}))
Result(summary(made), made).save({str(tmp_path)!r})
print(sorted({{"pandas", "scipy"}} & set(sys.modules)))
"""
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
