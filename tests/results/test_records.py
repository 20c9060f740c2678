"""Records: what goes in comes out, whenever it was flushed and wherever it lies."""

from __future__ import annotations

from math import isnan, nan
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.engine.log import (
    COMPLETED,
    DROPPED,
    PROMPT_TOO_LONG,
    QUEUED,
    REQUEST_FIELDS,
    RUNNING,
    TIMED_OUT,
)
from servesim.results import records as module
from servesim.results.records import Records
from tests.results.made import pool, records, request, step, waiting


def test_a_request_has_its_latencies_and_their_parts() -> None:
    """Sent at 1, scheduled at 1.5, first token at 2, a preemption of 0.25 s, last of 4 tokens at 3.5."""
    row = request(1.0, 2.0, 3.5, scheduled_s=1.5, output_tokens=4, preempted_s=0.25, preemptions=1)
    table = records([row]).request_table
    got = {name: table.column(name)[0] for name in ("ttft_s", "tpot_s", "e2e_s", "decode_s", "routing_s")}
    assert got == {"ttft_s": 1.0, "tpot_s": 0.5, "e2e_s": 2.5, "decode_s": 1.25, "routing_s": 0.0}


def test_the_parts_sum_to_the_whole() -> None:
    row = request(
        0.1, 0.7, 2.3, scheduled_s=0.3, preempted_s=0.2, transfer_s=0.05, decode_queue_s=0.15, output_tokens=9
    )
    table = records([row]).request_table
    names = ("routing", "queue", "prefill", "preempted", "transfer", "decode_queue", "decode")
    parts = [table.column(f"{name}_s")[0] for name in names]
    assert sum(parts) == pytest.approx(table.column("e2e_s")[0], rel=1e-12)


def test_a_request_of_one_token_has_no_tpot_and_did_not_decode() -> None:
    """In doubles 5.2 - 0.6 is not (2.5 - 0.6) + (5.2 - 2.5): the rounding is not a part."""
    table = records([request(0.6, 5.2, 5.2, scheduled_s=2.5, output_tokens=1)]).request_table
    assert isnan(table.column("tpot_s")[0])
    assert table.column("decode_s")[0] == 0.0


def test_what_has_not_happened_is_null() -> None:
    """A request under way has a TTFT, one in the queue has nothing but its sending; neither has an E2E."""
    made = records([request(0.0, 1.0, status=RUNNING, generated=7), waiting(0.5)])
    table = made.request_table
    assert np.isnan(table.column("e2e_s")).all()
    assert table.column("ttft_s").tolist()[0] == 1.0
    assert isnan(table.column("ttft_s")[1])
    assert table.column("status").tolist() == [RUNNING, QUEUED]
    assert table.column("generated_tokens").tolist() == [7, 0]
    assert np.isnan(table.column("replica")).tolist() == [False, True]


def test_only_what_completed_has_an_end_to_end_time() -> None:
    """A request that gave up at 2 s has left, but nobody was served."""
    made = records([request(0.0, 1.0, 2.0, status=TIMED_OUT)])
    assert isnan(made.request_table.column("e2e_s")[0])
    assert isnan(made.request_table.column("tpot_s")[0])


def test_a_leap_has_the_work_of_all_its_steps() -> None:
    """Two sequences with 10 context tokens decode three steps: context 10 + 12 + 14, as many pairs.

    FLOPs: 6 tokens and 36 pairs. Bytes: 3 steps, 6 rows, 36 context tokens.
    """
    row = step(0.0, 1.0, steps=3, sequences=2, decodes=2, context_tokens=10, pairs=10)
    table = records([], [row]).step_table
    assert table.column("flops").tolist() == [42.0]
    assert table.column("hbm_bytes").tolist() == [45.0]


def test_a_mixed_step_computes_its_chunks_and_its_decodes() -> None:
    """A chunk of 5 beside 2 decodes is 7 tokens through the layers; so are a static batch's padded rows."""
    mixed = step(0.0, 1.0, sequences=3, decodes=2, prefill_tokens=5)
    padded = step(1.0, 1.0, sequences=4, decodes=1)
    assert records([], [mixed, padded]).step_table.column("flops").tolist() == [7.0, 4.0]


def test_each_pool_works_by_its_own_step_time() -> None:
    pools = [pool("prefill"), pool("decode", first_replica=1, replicas=2)]
    rows = [step(0.0, 1.0, replica=r, sequences=r + 1, decodes=r + 1) for r in (2, 0, 1)]
    assert records([], rows, pools=pools).step_table.column("flops").tolist() == [3.0, 1.0, 2.0]


@given(st.lists(st.integers(0, 30), max_size=8))
def test_the_bytes_do_not_depend_on_when_the_buffers_are_flushed(bursts: list[int]) -> None:
    """Row groups of 16 requests, filled in bursts with flushes between, against all rows at once."""
    row = request(0.0, 1.0, 2.0)
    with patch.object(module, "GROUP_ROWS", 16):
        made = Records([pool()])
        for burst in bursts:
            made.requests.extend(row * burst)
            made.flush()
            assert len(made.requests) < 16 * len(REQUEST_FIELDS)
        made.close()
        whole = records([row] * sum(bursts))
        assert made.request_table.contents == whole.request_table.contents
    assert len(made.request_table) == sum(bursts)


def test_a_folder_holds_what_memory_would(tmp_path: Path) -> None:
    rows = [request(0.0, 1.0, 2.0), request(1.0, status=DROPPED, reason=PROMPT_TOO_LONG, generated=0)]
    written, kept = records(rows, [step(0.0, 1.0)], folder=tmp_path), records(rows, [step(0.0, 1.0)])
    for table, other in zip(written.tables, kept.tables, strict=True):
        assert (tmp_path / f"{table.name}.parquet").read_bytes() == other.contents
    for made in (written, kept):
        for table, other in zip(made.tables, kept.tables, strict=True):
            target = tmp_path / f"{table.name}.copy"
            target.mkdir(exist_ok=True)
            table.save(target)
            assert (target / f"{table.name}.parquet").read_bytes() == other.contents


def test_other_tools_read_words_and_nulls(tmp_path: Path) -> None:
    """The file, read without servesim: words as text, no NaN where nothing happened."""
    rows = [request(0.0, 1.0, 2.0), waiting(1.0, status=DROPPED, reason=PROMPT_TOO_LONG)]
    records(rows, folder=tmp_path)
    table = pq.read_table(tmp_path / "requests.parquet").to_pydict()
    assert table["status"] == ["completed", "dropped"]
    assert table["reason"] == ["", "prompt_too_long"]
    assert table["e2e_s"] == [2.0, None]
    assert table["replica"] == [0, None]
    assert table["prefill_replica"] == [None, None]


def test_columns_come_back_across_row_groups() -> None:
    """Nulls in some groups only, and in all rows of a column."""
    rows = [request(float(i), i + 1.0, nan if i < 3 else i + 2.0, status=COMPLETED) for i in range(10)]
    with patch.object(module, "GROUP_ROWS", 4):
        made = records(rows)
    assert made.request_table.column("sent_s").tolist() == list(range(10))
    assert np.isnan(made.request_table.column("e2e_s")).tolist() == [True] * 3 + [False] * 7
    assert np.isnan(made.request_table.column("prefill_replica")).all()
    assert [len(ids) for (ids,) in made.request_table.groups("request_id")] == [4, 4, 2]


def test_an_empty_table_has_empty_columns() -> None:
    made = records([])
    assert len(made.request_table) == 0
    assert made.request_table.column("ttft_s").dtype == np.float64
    assert made.request_table.column("status").dtype.kind == "i"
    assert list(made.step_table.groups("steps")) == []
