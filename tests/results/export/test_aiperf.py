"""AIPerf's files: the records amount to the summary, and the table to both."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import pytest

from servesim import load, run
from servesim.results.dialects.sample import Sample
from servesim.results.export.about import About
from servesim.results.export.aiperf import STATISTICS, records, summary_csv, summary_json
from servesim.results.slo import Slo
from tests.report.run.runs import KINDS
from tests.results.dialects.run import sample_of, small
from tests.results.export.test_vllm import ABOUT
from tests.results.made import records as table_records
from tests.results.made import request

Files = tuple[dict[str, Any], list[dict[str, Any]], str]


def exported(kind: str) -> Files:
    """Return the JSON, the records and the CSV of a run, the first two through their text."""
    result = run(load(*KINDS[kind]))
    about = About.of(result.summary)
    sample = Sample.of(result._records, result.summary["duration_s"], Slo(ttft_s=0.5), about.gpus)
    whole = json.loads(json.dumps(summary_json(sample, about, result._records), allow_nan=False))
    lines = [json.loads(json.dumps(each, allow_nan=False)) for each in records(sample, result._records)]
    return whole, lines, summary_csv(sample)


def values(lines: list[dict[str, Any]], name: str) -> list[float]:
    found = [line["metrics"][name]["value"] for line in lines if name in line["metrics"]]
    return [each for gaps in found for each in gaps] if found and isinstance(found[0], list) else found


@pytest.mark.parametrize("kind", ["continuous", "prefill_first", "preempting", "cut"])
def test_the_records_amount_to_the_summary(kind: str) -> None:
    whole, lines, _ = exported(kind)
    told = {name: block for name, block in whole.items() if isinstance(block, dict) and "count" in block}
    assert len(told) == 11
    for name, block in told.items():
        sample = values(lines, name)
        assert block["count"] == len(sample)
        expected = {
            "avg": np.mean(sample),
            "min": min(sample),
            "max": max(sample),
            "std": np.std(sample),
            "sum": sum(sample),
            **{each: np.percentile(sample, int(each[1:])) for each in STATISTICS if each[0] == "p"},
        }
        for statistic, value in expected.items():
            assert block[statistic] == pytest.approx(value, rel=1e-9, abs=1e-9), (name, statistic)
    successful = [line for line in lines if line["error"] is None]
    assert whole["request_count"]["avg"] == len(successful)
    assert whole["error_request_count"]["avg"] == len(lines) - len(successful)
    duration_ns = max(line["metadata"]["request_end_ns"] for line in successful) - min(
        line["metadata"]["request_start_ns"] for line in successful
    )
    assert whole["benchmark_duration"]["avg"] == pytest.approx(duration_ns / 1e9, abs=2e-9)


def test_a_single_figure_has_a_unit_and_an_average_only() -> None:
    whole, _, _ = exported("continuous")
    assert whole["request_throughput"].keys() == {"unit", "avg"}
    assert whole["schema_version"] == "1.1"
    assert whole["input_config"]["endpoint"]["model_names"] == ["llama3.1-8b"]


def test_the_table_has_the_figures_of_the_summary() -> None:
    whole, _, text = exported("continuous")
    rows = list(csv.reader(io.StringIO(text)))
    blank = rows.index([])
    assert rows[0] == ["Metric", *STATISTICS]
    assert rows[blank + 1] == ["Metric", "Value"]
    (ttft,) = [row for row in rows if row and row[0] == "Time to First Token (ms)"]
    assert ttft[1:] == [f"{whole['time_to_first_token'][name]:.2f}" for name in STATISTICS]
    assert ["Request Count", str(whole["request_count"]["avg"])] in rows[blank:]


def test_what_a_request_lacks_is_not_there() -> None:
    """One token: no gaps; dropped: no latencies but an error, which the summary counts."""
    sample = sample_of(small(), slo=Slo())
    first, _, dropped, last = records(sample, small())
    assert first["metrics"]["inter_chunk_latency"] == {"value": [500.0, 1000.0, 250.0, 500.0], "unit": "ms"}
    assert first["metadata"]["request_end_ns"] == 3_250_000_000
    assert not {"inter_token_latency", "inter_chunk_latency", "time_to_second_token"} & last["metrics"].keys()
    assert dropped["metrics"] == {"error_isl": {"value": 99, "unit": "tokens"}}
    assert dropped["error"] == {"code": None, "type": "dropped", "message": "prompt_too_long"}
    whole = summary_json(sample, ABOUT, small())
    assert whole["error_summary"] == [{"error_details": dropped["error"], "count": 1}]
    assert "goodput" not in whole  # no limits were given


def test_a_conversation_has_turns_and_a_request_of_none_is_one() -> None:
    rows = [(0, 7, 0), (1, -1, 0), (2, 7, 1)]
    made = [
        request(float(n), n + 0.5, n + 0.5, request_id=n, session=session, turn=turn, output_tokens=1)
        for n, session, turn in rows
    ]
    tables = table_records(made)
    sample = Sample.of(tables, 3.0, Slo(), {"serve": 2})
    told = [line["metadata"] for line in records(sample, tables)]
    assert [(each["conversation_id"], each["turn_index"]) for each in told] == [("7", 0), ("1", 0), ("7", 1)]
    assert [each["x_request_id"] for each in told] == ["0", "1", "2"]
