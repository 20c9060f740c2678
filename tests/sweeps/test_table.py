"""Rows and tables."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from servesim import ConfigError, load, run
from servesim.sweeps.flat import flatten, unflatten
from servesim.sweeps.table import FIRST, LAST, axes_of, frame_of, read_table, table_of, write_table


def row(**more: Any) -> dict[str, Any]:
    fixed = {
        "point": 0,
        "variant": "",
        "seed": 0,
        "status": "clean",
        "error": None,
        "command": "",
        "hash": "",
    }
    return {**fixed, **more}


def test_a_summary_is_a_row_and_back() -> None:
    summary = run(load("workload.requests=20", "calibration=roofline", "scheduler=disaggregated")).summary
    flat = flatten(summary)
    assert flat["latency.ttft_s.p99"] == summary["latency"]["ttft_s"]["p99"]
    assert not [name for name in flat if name.startswith("simulator")]
    del summary["simulator"]
    for section, name in (summary["accounting"], "dropped"), (summary["scenario"]["workload"], "tenants"):
        assert section.pop(name) == {}  # nothing was, and nobody is named: an empty mapping has no figures
    assert unflatten(flat) == summary


def test_figures_of_a_section_stand_side_by_side_whichever_row_has_them() -> None:
    rows = [row(**{"a.x": 1, "b.x": 1}), row(**{"a.x": 2, "a.y": 2.5, "b.x": 2})]
    table = table_of(rows, [])
    assert table.column_names[-3:] == ["a.x", "a.y", "b.x"]
    assert table["a.y"].to_pylist() == [None, 2.5]


@pytest.mark.parametrize(
    ("values", "kind", "kept"),
    [
        ([1, 2], "int64", [1, 2]),
        ([1, 2.5], "double", [1.0, 2.5]),
        ([None, None], "double", [None, None]),
        ([True, None], "bool", [True, None]),
        (["auto", 4096, True], "string", ["auto", "4096", "true"]),
        ([[1, 2], None], "string", ["[1, 2]", None]),
        ([1, True], "string", ["1", "true"]),
        ([2**63 - 1, -(2**63) + 1], "int64", [2**63 - 1, -(2**63) + 1]),
        ([1, 2**63], "string", ["1", str(2**63)]),
        ([10**400, 0.5], "string", [str(10**400), "0.5"]),
    ],
)
def test_a_column_has_the_type_of_its_values(values: list[Any], kind: str, kept: list[Any]) -> None:
    column = table_of([row(key=value) for value in values], ["key"])["key"]
    assert (str(column.type), column.to_pylist()) == (kind, kept)


def test_a_table_is_read_back_as_it_was(tmp_path: Path) -> None:
    table = table_of([row(gpu="x", **{"a.b": 1.5})], ["gpu"])
    path = write_table(table, tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    assert read_table(tmp_path).equals(frame_of(table))
    assert read_table(path).equals(frame_of(table))
    assert axes_of(table.column_names) == ["gpu"]


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_text("no")
    for place in (tmp_path, tmp_path / "x.parquet", tmp_path / "nowhere"):
        with pytest.raises(ConfigError, match="no table"):
            read_table(place)


@pytest.mark.parametrize("name", [*FIRST, *LAST])
def test_a_table_without_a_column_of_a_sweep_is_refused(name: str, tmp_path: Path) -> None:
    table = table_of([row(gpu="x", **{"a.b": 1.5})], ["gpu"])
    odd = table.set_column(table.column_names.index(name), name, pa.array([1.5]))
    for foreign in (table.drop_columns([name]), odd):
        pq.write_table(foreign, tmp_path / "sweep.parquet")
        with pytest.raises(ConfigError, match=f"{tmp_path}: is no table of a sweep .*{name}"):
            read_table(tmp_path)


def test_a_table_with_its_columns_elsewhere_is_refused(tmp_path: Path) -> None:
    table = table_of([row()], [])
    pq.write_table(table.select(table.column_names[::-1]), tmp_path / "sweep.parquet")
    with pytest.raises(ConfigError, match="another order"):
        read_table(tmp_path)


def test_an_empty_table_has_its_columns() -> None:
    assert table_of([], ["gpu"]).column_names[:3] == ["point", "variant", "gpu"]
