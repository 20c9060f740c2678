"""The shipped tables of lengths against the traces that they were measured from."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from servesim.check import check
from servesim.workload.formats import Recording, read
from servesim.workload.quantiles import Quantiles
from tests.shared import shared_data
from tests.workload.theory import rank_correlation

ROOT = Path(__file__).parents[2]
TRACES = {"conversation": "AzureLLMInferenceTrace_conv.csv", "code": "AzureLLMInferenceTrace_code.csv"}
NAMES = pytest.mark.parametrize("name", TRACES)


def shipped(name: str) -> Path:
    return ROOT / "conf" / "workload" / "lengths" / f"{name}.yaml"


def table(name: str) -> Quantiles:
    values: dict[str, Any] = yaml.safe_load(shipped(name).read_text())
    assert values.pop("kind") == "quantiles"
    return Quantiles(**values)


def recorded(name: str) -> Recording:
    return read(shared_data("traces", TRACES[name]), "azure")


@NAMES
def test_the_table_is_what_the_script_prints(name: str) -> None:
    measure = runpy.run_path(str(ROOT / "experiments" / "traffic" / "measure.py"))["measure"]
    assert measure(shared_data("traces", TRACES[name])) == shipped(name).read_text()


@NAMES
def test_means_agree_within_1_percent(name: str) -> None:
    trace = recorded(name)
    means = trace.input_tokens.mean(), trace.output_tokens.mean()
    assert table(name).mean == pytest.approx(means, rel=0.01)


@NAMES
@pytest.mark.parametrize("percent", [5, 25, 50, 75, 90, 95, 99])
def test_percentiles_agree_within_1_percent_or_a_token(name: str, percent: float) -> None:
    trace, lengths = recorded(name), table(name)
    for column, tokens in ((1, trace.input_tokens), (2, trace.output_tokens)):
        found = np.interp(
            percent / 100, [row[0] for row in lengths.table], [row[column] for row in lengths.table]
        )
        assert found == pytest.approx(np.percentile(tokens, percent), rel=0.01, abs=1)


@NAMES
def test_ranks_correlate_as_in_the_trace(name: str) -> None:
    trace = recorded(name)
    assert table(name).rank_correlation == pytest.approx(
        rank_correlation(trace.input_tokens, trace.output_tokens), abs=5e-4
    )


@pytest.mark.parametrize(("name", "mean"), [("conversation", (1155.9, 211.2)), ("code", (2048.8, 28.0))])
def test_the_tables_keep_their_means(name: str, mean: tuple[float, float]) -> None:
    """Golden values that need no trace: 1,154.7 and 211.1; 2,047.8 and 27.9 tokens are in the traces."""
    check(table(name))
    assert table(name).mean == pytest.approx(mean, abs=0.1)


@NAMES
def test_the_source_is_credited(name: str) -> None:
    assert (
        "https://github.com/Azure/AzurePublicDataset, by Microsoft, licence CC-BY-4.0"
        in shipped(name).read_text()
    )
