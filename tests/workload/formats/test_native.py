"""The format of servesim's own, in its three kinds of file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from servesim import load, run
from servesim.check import ConfigError
from servesim.workload.formats import read
from servesim.workload.trace import Trace


def parquet(path: Path, **columns: list[object]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_parquet_is_read(tmp_path: Path) -> None:
    path = parquet(
        tmp_path / "t",
        output_tokens=[3, 4],
        input_tokens=[20, 5],
        arrival_s=[0.25, 0.5],
        block_hashes=[[1, 2], [3]],
        block_tokens=[16, 16],
        model=["a", "b"],
    )
    recording = read(path)
    assert (recording.format, recording.unread) == ("native", ("model",))
    assert recording.time_ns.tolist() == [250_000_000, 500_000_000]
    assert recording.blocks is not None
    assert recording.blocks.ids.tolist() == [1, 2, 3]


def test_the_requests_of_a_run_are_a_trace(tmp_path: Path) -> None:
    scenario = load("model=llama3.1-8b", "cluster.tensor_parallel_size=1", "workload.requests=50")
    result = run(scenario)
    result.save(tmp_path / "run")
    trace = Trace(str(tmp_path / "run" / "requests.parquet"))
    assert trace.notes.requests == 50
    sent = result.requests.sort_values("sent_s")
    [batch] = trace.batches(None)  # type: ignore[arg-type] # nothing is drawn
    assert batch.sent_s == pytest.approx(sent.sent_s - sent.sent_s.min(), abs=1e-9)
    assert batch.input_tokens.tolist() == sent.input_tokens.tolist()


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"input_tokens": [1, None]}, "path, row 2, input_tokens: must be a whole number from 1"),
        ({"arrival_s": [0.0, -1.0]}, "path, row 2, arrival_s = -1.0: must be a number from 0 to 9e+09 (s)"),
        ({"input_tokens": ["1", "2"]}, "path, row 1, input_tokens = '1': must be a whole number from 1"),
        ({"block_hashes": [[1], [2]]}, "has no block_tokens, which must be a whole number from 1"),
        (
            {"block_hashes": [[1], [2]], "block_tokens": [16, 32]},
            "must have one block_tokens in all rows, not 16 and 32",
        ),
    ],
)
def test_bad_values_of_parquet_are_refused(
    columns: dict[str, list[object]], problem: str, tmp_path: Path
) -> None:
    good: dict[str, list[object]] = {"input_tokens": [1, 1], "output_tokens": [1, 1]}
    with pytest.raises(ConfigError) as refused:
        read(parquet(tmp_path / "t", **good | columns))
    assert problem in str(refused.value)


def test_parquet_without_a_column_is_refused_once(tmp_path: Path) -> None:
    path = parquet(tmp_path / "t", input_tokens=[1, 2, 3], tokens=[1, 2, 3])
    with pytest.raises(
        ConfigError, match=r"1 problem in the input:\n.*has no output_tokens, .*: 3 times, row 1"
    ):
        read(path)


def test_parquet_without_rows_has_no_request(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no request in it$"):
        read(parquet(tmp_path / "t", input_tokens=[], output_tokens=[]))


def test_half_a_parquet_file_is_refused(tmp_path: Path) -> None:
    path = parquet(tmp_path / "t", input_tokens=[1], output_tokens=[1])
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ConfigError, match="is no Parquet file"):
        read(path)


def test_blocks_need_their_size(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("input_tokens,output_tokens,block_hashes\n1,1,5\n")
    with pytest.raises(ConfigError, match=r"block_tokens \(of block_hashes\) is not there once"):
        read(tmp_path / "t")


def test_splitwise_rows_are_single_requests(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("arrival_timestamp,batch_size,prompt_size,token_size\n0,1,5,5\n1,2,5,5\n")
    with pytest.raises(ConfigError, match="path, line 3, batch_size = '2': must be 1"):
        read(tmp_path / "t")
