"""Readers of measured runs: what a file holds tells its format, and one error lists all that is wrong."""

from __future__ import annotations

import json
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servesim.check import ConfigError
from servesim.validate.compare import Comparison, figures
from servesim.validate.measured import Measured
from servesim.validate.readers import read, read_runs
from servesim.validate.readers.made import arrivals, equal_lengths
from servesim.validate.readers.selection import conditions
from servesim.validate.readers.spelling import plain
from tests.shared import shared_data
from tests.validate.runs import rows_of, small, vllm_result, write_csv, write_json

RUN = small()
COLUMNS = ("input_tokens", "output_tokens", "ttft_s", "e2e_s")


def problems(path: Path, **how: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read_runs(path, **how)
    return [str(problem) for problem in caught.value.problems]


def same(read: Measured, first_s: float = 0.0) -> None:
    """Assert that a run is the small one, its times counted from ``first_s``."""
    np.testing.assert_allclose(read.sent_s, RUN.sent_s + first_s, atol=1e-6)
    for name in COLUMNS:
        np.testing.assert_allclose(getattr(read, name), getattr(RUN, name), rtol=1e-9)


class TestVllm:
    def test_detailed_results_have_every_request(self, tmp_path: Path) -> None:
        run = read(write_json(tmp_path / "any.txt", vllm_result(RUN)))
        same(run)
        assert run.itl_s is not None
        assert len(run.itl_s) == (RUN.output_tokens - 1).sum()
        assert (run.format, run.request_rate, run.model) == (
            "vllm bench serve",
            8.0,
            "meta-llama/Llama-3.1-8B",
        )

    def test_without_latencies_they_follow_from_the_gaps(self, tmp_path: Path) -> None:
        result = vllm_result(RUN)
        del result["latencies"]
        same(read(write_json(tmp_path / "run.json", result)))

    def test_failed_requests_are_counted_and_left_out(self, tmp_path: Path) -> None:
        result = vllm_result(RUN)
        result["errors"][3] = "Traceback: connection reset"
        result["output_lens"][5] = 0
        run = read(write_json(tmp_path / "run.json", result))
        assert (run.failed, run.requests) == (2, RUN.requests - 2)
        assert 3.0 not in run.sent_s

    def test_requests_out_of_order_are_put_in_order(self, tmp_path: Path) -> None:
        result = vllm_result(RUN)
        names = ("start_times", "input_lens", "output_lens", "ttfts", "itls", "latencies")
        backwards = {name: result[name][::-1] for name in names}
        same(read(write_json(tmp_path / "run.json", result | backwards)))

    def test_a_burst_with_limited_concurrency_is_a_closed_loop(self, tmp_path: Path) -> None:
        result = vllm_result(RUN, request_rate="inf", max_concurrency=4)
        run = read(write_json(tmp_path / "run.json", result))
        assert run.of_users
        assert (run.request_rate, run.max_concurrency) == (inf, 4)

    def test_old_results_without_start_times_are_sent_at_their_rate_and_say_so(self, tmp_path: Path) -> None:
        result = vllm_result(RUN)
        del result["start_times"]
        run = read(write_json(tmp_path / "run.json", result))
        assert run.sent_s[-1] == pytest.approx(RUN.requests / 8.0)
        assert "no start_times" in run.notes[0]

    def test_old_results_without_start_times_or_rate_are_refused(self, tmp_path: Path) -> None:
        result = vllm_result(RUN)
        del result["start_times"], result["request_rate"]
        (problem,) = problems(write_json(tmp_path / "run.json", result))
        assert "neither times of sending nor a request rate" in problem

    def test_summaries_have_their_figures_and_nothing_else(self, tmp_path: Path) -> None:
        result = {
            "request_rate": "inf",
            "max_concurrency": 4,
            "completed": 10,
            "total_input_tokens": 1003,
            "total_output_tokens": 207,
            "request_throughput": 2.5,
            "output_throughput": 51.75,
            "mean_ttft_ms": 120.0,
            "median_ttft_ms": 110.0,
            "p99_ttft_ms": 300.0,
            "mean_e2el_ms": 900.0,
        }
        run = read(write_json(tmp_path / "run.json", result))
        assert (run.input_tokens.sum(), run.output_tokens.sum()) == (1003, 207)
        assert run.closed_loop
        assert figures(run) == {
            ("ttft", "mean"): 0.12,
            ("ttft", "p50"): 0.11,
            ("ttft", "p99"): 0.3,
            ("e2e", "mean"): 0.9,
            ("throughput", "requests"): 2.5,
            ("throughput", "output_tokens"): 51.75,
        }
        assert Comparison(run, RUN).ks == {}

    def test_appended_results_are_a_run_each(self, tmp_path: Path) -> None:
        path = tmp_path / "runs.jsonl"
        path.write_text("\n".join(json.dumps(vllm_result(RUN, request_rate=rate)) for rate in (1.0, 2.0)))
        assert [run.request_rate for run in read_runs(path)] == [1.0, 2.0]

    def test_every_wrong_entry_is_listed(self, tmp_path: Path) -> None:
        result = vllm_result(RUN)
        result["ttfts"][1], result["input_lens"][2], result["itls"][4] = -1.0, 1.5, "soon"
        result["latencies"][6], result["start_times"][7], result["max_concurrency"] = "x", None, -3
        found = problems(write_json(tmp_path / "run.json", result))
        places = ("max_concurrency", "input_lens[2]", "itls[4]", "ttfts[1]", "latencies[6]", "start_times[7]")
        assert sorted(text.split(", ")[1].split(":")[0].split(" = ")[0] for text in found) == sorted(places)

    def test_lists_of_different_sizes_are_refused(self, tmp_path: Path) -> None:
        result = vllm_result(RUN)
        result["ttfts"].pop()
        (problem,) = problems(write_json(tmp_path / "run.json", result))
        assert "ttfts 11" in problem


class TestTables:
    def test_columns_are_known_by_several_spellings_and_units(self, tmp_path: Path) -> None:
        rows = [
            {
                "Arrival Time": row["sent_s"],
                "prompt_tokens": float(row["input_tokens"]),
                "completion tokens": row["output_tokens"],
                "TTFT (ms)": 1e3 * row["ttft_s"],
                "request_latency_us": 1e6 * row["e2e_s"],
            }
            for row in rows_of(RUN)
        ]
        run = read(write_csv(tmp_path / "run.csv", rows))
        same(run)
        assert run.notes == ("Arrival Time taken as seconds, as their names end with no unit",)

    def test_the_time_of_further_tokens_makes_e2e(self, tmp_path: Path) -> None:
        rows = [
            {
                "arrival_s": row["sent_s"],
                "input_tokens": row["input_tokens"],
                "output_tokens": row["output_tokens"],
                "ttft_s": row["ttft_s"],
                "generation_time_s": row["e2e_s"] - row["ttft_s"],
            }
            for row in rows_of(RUN)
        ]
        run = read(write_csv(tmp_path / "run.csv", rows))
        same(run)
        np.testing.assert_allclose(run.tpot_s, 0.02)

    def test_tpot_makes_e2e(self, tmp_path: Path) -> None:
        rows = [row | {"tpot_ms": 20.0} for row in rows_of(RUN)]
        for row in rows:
            del row["e2e_s"]
        same(read(write_csv(tmp_path / "run.csv", rows)))

    def test_moments_of_an_engine_make_latencies_on_its_clock(self, tmp_path: Path) -> None:
        lines = [
            {
                "arrival_time": row["sent_s"] + 1.7e9,
                "queued_ts": row["sent_s"] + 4e5,
                "first_token_ts": row["sent_s"] + 4e5 + row["ttft_s"],
                "last_token_ts": row["sent_s"] + 4e5 + row["e2e_s"],
                "input_toks": row["input_tokens"],
                "output_toks": row["output_tokens"],
            }
            for row in rows_of(RUN)
        ]
        path = tmp_path / "run.jsonl"
        path.write_text("\n".join(map(json.dumps, lines)))
        run = read(path)
        np.testing.assert_allclose(run.ttft_s, RUN.ttft_s, atol=1e-6)
        np.testing.assert_allclose(run.e2e_s, RUN.e2e_s, atol=1e-6)
        assert "another clock" in run.notes[0]

    def test_columns_that_say_so_tell_failed_requests(self, tmp_path: Path) -> None:
        rows = [
            row | {"status": "failed" if row["output_tokens"] == 4 else "completed"} for row in rows_of(RUN)
        ]
        run = read(write_csv(tmp_path / "run.csv", rows))
        assert (run.failed, run.requests) == (1, RUN.requests - 1)

    def test_missing_latencies_are_counted(self, tmp_path: Path) -> None:
        rows = [row | ({"ttft_s": ""} if row["output_tokens"] == 4 else {}) for row in rows_of(RUN)]
        run = read(write_csv(tmp_path / "run.csv", rows))
        assert np.isnan(run.ttft_s).sum() == 1
        assert run.notes == ("1 of 12 requests have no TTFT",)

    def test_every_wrong_cell_is_listed_with_its_line(self, tmp_path: Path) -> None:
        rows = rows_of(RUN)
        rows[0]["sent_s"], rows[1]["input_tokens"], rows[2]["ttft_s"] = "soon", "2.5", "-0.1"
        rows[3]["sent_s"], rows[4]["e2e_s"], rows[5]["output_tokens"] = "", "1_0", "many"
        found = problems(write_csv(tmp_path / "run.csv", rows))
        assert sorted(text.split(" = ")[0].split(":")[0] for text in found) == [
            "run.csv, line 2, sent_s",
            "run.csv, line 3, input_tokens",
            "run.csv, line 4, ttft_s",
            "run.csv, line 5, sent_s",
            "run.csv, line 6, e2e_s",
            "run.csv, line 7, output_tokens",
        ]

    def test_of_very_many_wrong_cells_the_rest_is_counted(self, tmp_path: Path) -> None:
        rows = [row | {"ttft_s": "?"} for row in rows_of(small(30))]
        found = problems(write_csv(tmp_path / "run.csv", rows))
        assert len(found) == 21
        assert "10 more values are wrong" in found[-1]

    def test_rows_of_another_width_are_listed(self, tmp_path: Path) -> None:
        path = write_csv(tmp_path / "run.csv", rows_of(RUN))
        path.write_text(path.read_text() + "1,2\n1,2,3,4,5,6\n")
        assert [text.split(" = ")[0] for text in problems(path)] == ["run.csv, line 14", "run.csv, line 15"]

    def test_conditions_take_rows_and_columns_tell_runs_apart(self, tmp_path: Path) -> None:
        rows = [row | {"qps": 1.0 + (n % 2), "kind": "ab"[n // 6]} for n, row in enumerate(rows_of(RUN))]
        path = write_csv(tmp_path / "run.csv", rows)
        runs = read_runs(path, conditions("kind=a"), ["qps"])
        assert [(run.source, run.requests) for run in runs] == [
            ("run.csv qps=1.0", 3),
            ("run.csv qps=2.0", 3),
        ]
        assert read_runs(path, conditions("qps=2"))[0].requests == 6
        assert "is no column" in problems(path, by=["rate"])[0]
        assert "no row is left" in problems(path, where={"qps": "3"})[0]

    def test_the_shared_tables_are_read(self) -> None:
        path = shared_data("serving", "vllm_llama70b_2x_h100_tp2_per_request.csv")
        runs = read_runs(path, {"scenario": "short_input"}, ["qps"])
        assert sum(run.requests for run in runs) == 3141 - 252
        run = read_runs(path, {"scenario": "sharegpt"})[0]
        assert np.nanmedian(run.tpot_s) == pytest.approx(0.0363, abs=1e-4)

    def test_the_shared_moments_of_an_engine_are_read(self) -> None:
        run = read(shared_data("serving", "vllm019_rtxpro6000_llama8b", "requests.jsonl"))
        assert run.requests == 300
        assert run.ttft_s.mean() == pytest.approx(7.0972, abs=1e-4)  # its own summary.txt
        assert run.tpot_s.mean() == pytest.approx(0.0325, abs=1e-4)


def record(row: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a request as AIPerf records it."""
    return {
        "metadata": {
            "request_start_ns": 1_759_813_207_532_900_363 + int(row["sent_s"] * 1e9),
            "benchmark_phase": "profiling",
            "was_cancelled": False,
        },
        "metrics": {
            "input_sequence_length": {"value": row["input_tokens"], "unit": "tokens"},
            "output_sequence_length": {"value": row["output_tokens"], "unit": "tokens"},
            "time_to_first_token": {"value": 1e3 * row["ttft_s"], "unit": "ms"},
            "request_latency": {"value": row["e2e_s"], "unit": "sec"},
            "inter_chunk_latency": {"value": [20.0] * (row["output_tokens"] - 1), "unit": "ms"},
        },
        "error": None,
    } | more


class TestAiperf:
    def test_records_are_requests(self, tmp_path: Path) -> None:
        records = [record(row) for row in rows_of(RUN)]
        records[0]["metadata"]["benchmark_phase"] = "warmup"
        records[1] = record(rows_of(RUN)[1], error={"code": 499})
        path = tmp_path / "profile_export.jsonl"
        path.write_text("\n".join(map(json.dumps, records)))
        run = read(path)
        assert (run.requests, run.failed) == (RUN.requests - 2, 1)
        assert run.notes == ("1 requests of the warm-up left out",)
        np.testing.assert_allclose(run.ttft_s, RUN.ttft_s[2:])
        np.testing.assert_allclose(run.e2e_s, RUN.e2e_s[2:])
        np.testing.assert_allclose(run.sent_s, RUN.sent_s[2:] - 2, atol=1e-6)
        assert set(run.itl_s.tolist() if run.itl_s is not None else []) == {0.02}

    def test_wrong_records_are_listed_by_line(self, tmp_path: Path) -> None:
        records = [record(row) for row in rows_of(RUN)]
        records[2]["metrics"]["time_to_first_token"]["value"] = "late"
        del records[4]["metadata"]["request_start_ns"]
        path = tmp_path / "profile_export.jsonl"
        path.write_text("\n".join(map(json.dumps, records)))
        assert [text.split(" = ")[0].split(": ")[0] for text in problems(path)] == [
            "profile_export.jsonl, line 3, time_to_first_token",
            "profile_export.jsonl, line 5, metadata.request_start_ns",
        ]

    def test_the_two_summaries_say_the_same(self, tmp_path: Path) -> None:
        said = {
            "request_latency": {"unit": "ms", "avg": 6550.36, "p50": 5799.9, "p90": 8594.21, "p99": 9381.63},
            "time_to_first_token": {"unit": "ms", "avg": 1588.8, "p50": 787.54},
            "inter_token_latency": {"unit": "ms", "avg": 51.76, "p99": 55.87},
            "input_sequence_length": {"unit": "tokens", "avg": 550.0},
            "output_sequence_length": {"unit": "tokens", "avg": 96.85},
            "request_count": {"unit": "requests", "avg": 200.0},
            "request_throughput": {"unit": "requests/sec", "avg": 13.16},
            "output_token_throughput": {"unit": "tokens/sec", "avg": 1274.63},
            "input_config": {"loadgen": {"concurrency": 100}, "endpoint": {"model_names": ["gpt-oss-20b"]}},
        }
        run = read(write_json(tmp_path / "profile_export_aiperf.json", said))
        assert (run.closed_loop, run.max_concurrency, run.model) == (True, 100, "gpt-oss-20b")
        assert run.stated["tpot"] == {"mean": pytest.approx(0.05176), "p99": pytest.approx(0.05587)}
        text = (
            "Metric,avg,p50,p90,p99\nRequest Latency (ms),6550.36,5799.9,8594.21,9381.63\n"
            "Time to First Token (ms),1588.8,787.54,,\nInter Token Latency (ms),51.76,,,55.87\n"
            "Input Sequence Length (tokens),550.0,,,\nOutput Sequence Length (tokens),96.85,,,\n\n"
            "Metric,Value\nRequest Count,200.00\nRequest Throughput (requests/sec),13.16\n"
            "Output Token Throughput (tokens/sec),1274.63\n\n"
            "Endpoint,GPU_Index,Metric,avg\nlocalhost:9401,0,GPU Power Usage (W),43.37\n"
        )
        path = tmp_path / "profile_export_aiperf.csv"
        path.write_text(text)
        report = read(path)
        assert report.stated == run.stated
        assert not report.closed_loop
        assert "does not say how requests were sent" in report.notes[1]


class TestGuidellm:
    @staticmethod
    def report(old: bool = False) -> dict[str, Any]:
        def request(row: dict[str, Any]) -> dict[str, Any]:
            start = row["sent_s"] + 1.76e9
            where = (
                {"scheduler_info": {"request_timings": {"request_start": start}}}
                if old
                else {"request_start_time": start}
            )
            return where | {
                "prompt_tokens": row["input_tokens"],
                "output_tokens": row["output_tokens"],
                "request_latency": row["e2e_s"],
                "time_to_first_token_ms": 1e3 * row["ttft_s"],
            }

        place = "args" if old else "config"
        users = {"streams": 4} if old else {"max_concurrency": 4}
        return {
            "benchmarks": [
                {
                    place: {"strategy": users},
                    "duration": 12.0,
                    "requests": {
                        "successful": [request(row) for row in rows_of(RUN)],
                        "errored": [{}],
                        "incomplete": [{}, {}],
                    },
                }
            ]
        }

    @pytest.mark.parametrize("old", [False, True])
    def test_benchmarks_are_runs(self, tmp_path: Path, old: bool) -> None:
        run = read(write_json(tmp_path / "benchmarks.json", self.report(old)))
        same(run)
        assert (run.failed, run.of_users, run.max_concurrency) == (3, True, 4)

    def test_a_report_of_several_benchmarks_is_several_runs(self, tmp_path: Path) -> None:
        report = self.report()
        path = write_json(tmp_path / "b.json", {"benchmarks": report["benchmarks"] * 2})
        assert [run.source for run in read_runs(path)] == ["b.json[0]", "b.json[1]"]
        with pytest.raises(ConfigError, match="holds 2 runs"):
            read(path)

    def test_wrong_requests_are_listed(self, tmp_path: Path) -> None:
        report = self.report()
        requests = report["benchmarks"][0]["requests"]["successful"]
        requests[1]["prompt_tokens"], requests[3]["request_latency"] = None, -1
        found = problems(write_json(tmp_path / "b.json", report))
        assert [text.split(", ")[1].split(" = ")[0].split(":")[0] for text in found] == [
            "requests.successful[1].prompt_tokens",
            "requests.successful[3].request_latency",
        ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is an empty file"),
        ("{", "is no JSON"),
        ("{}", "is of no format that is known"),
        ("[1, 2]", "is of no format that is known"),
        ("a,b\n1,2\n", "is of no format that is known"),
        ('{"benchmarks": []}', "has no benchmarks"),
        ("sent,input,output\n0,1,2\n", "has neither TTFT nor E2E"),
        ("sent,input,output,output\n0,1,2,2\n", "names a column twice"),
        ('{"metadata": {}, "metrics": {}}\n{"metadata": {}, \n', "line 2"),
    ],
)
def test_files_of_no_use_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    (problem,) = problems(path)
    assert message in problem


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    assert "no such file" in problems(tmp_path / "absent")[0]
    assert "is a folder" in problems(tmp_path)[0]
    (tmp_path / "packed").write_bytes(b"\x1f\x8b\x08\xff")
    assert "is not text" in problems(tmp_path / "packed")[0]


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("ttft_ms", ("ttft", 1e-3)),
        ("TTFT (ms)", ("ttft", 1e-3)),
        ("ttft", ("ttft", None)),
        ("Request Latency [us]", ("request_latency", 1e-6)),
        ("generation_tokens", ("generation_tokens", None)),
        ("first_token_ts", ("first_token_ts", None)),
    ],
)
def test_names_end_with_their_unit(name: str, meaning: tuple[str, float | None]) -> None:
    assert plain(name) == meaning


def test_made_lengths_add_up_and_made_times_end_at_the_rate() -> None:
    assert equal_lengths(7, 100).tolist() == [14, 15, 14, 14, 14, 15, 14]
    assert arrivals(50, 5.0, 1.0, "x")[-1] == pytest.approx(10.0)
    assert not arrivals(50, inf, 1.0, "x").any()


def test_a_condition_is_given_once() -> None:
    with pytest.raises(ConfigError) as caught:
        conditions("qps=1 kind=a qps=2 odd")
    assert [str(problem) for problem in caught.value.problems] == [
        "--where = 'odd': must be COLUMN=VALUE",
        "--where = 'qps': is given twice; rows must have all values",
    ]


def test_an_end_before_the_first_token_has_no_tpot(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("arrival_s,input,output,ttft_ms,e2e_ms\n0,9,10,500,200\n1,9,10,20,110\n2,9,1,20,20\n")
    assert read(path).sample("tpot").tolist() == pytest.approx([0.01])


def test_of_two_columns_of_one_thing_the_other_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("arrival_s,input,output,ttft_ms,ttft_s,e2e_ms\n0,9,10,20,0.05,200\n")
    run = read(path)
    assert run.ttft_s.tolist() == [0.02]
    assert "not read: ttft_s, as ttft_ms says it" in run.notes
