"""Tables as they lie in a run's folder: what the run has in memory, or a clear word on what is missing."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from servesim import ConfigError, load, run
from servesim.results.stored import Folder
from servesim.results.token_times import TokenTimes
from tests.report.run.runs import KINDS


@pytest.mark.parametrize("kind", ["preempting", "prefill_first", "cut"])
def test_a_folder_has_the_tables_of_its_run(kind: str, tmp_path: Path) -> None:
    result = run(load(*KINDS[kind]))
    result.save(tmp_path)
    folder, records = Folder(tmp_path), result._records
    for saved, kept in zip(
        (folder.request_table, folder.step_table, folder.gap_table), records.tables, strict=True
    ):
        assert saved.frame().equals(kept.frame())
    got, expected = (TokenTimes.of(tables).inter_token_s() for tables in (folder, records))
    assert [gaps_s.tolist() for gaps_s in got] == [gaps_s.tolist() for gaps_s in expected]


def test_a_table_of_an_earlier_version_is_refused(tmp_path: Path) -> None:
    run(load(*KINDS["preempting"])).save(tmp_path)
    gaps = pq.read_table(tmp_path / "gaps.parquet")
    pq.write_table(gaps.drop_columns(["request_id"]), tmp_path / "gaps.parquet")
    with pytest.raises(
        ConfigError, match=r"gaps.parquet: request_id: there is no such column; the run is of an"
    ):
        Folder(tmp_path)
