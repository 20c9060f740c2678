"""The overhead of KV transfers: found again from made ones, and as good as it is said to be."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from calibration.conf import CONF
from calibration.sources.tidy import SourceError
from calibration.transfer import (
    BYTES_PER_TOKEN,
    GPU,
    LONGEST_FITTED,
    PORTS,
    TRANSFERS,
    Fit,
    fit_transfer,
    transfers,
)
from servesim.cluster.transfer import Links, Transfer
from servesim.engine.clock import Clock
from tests.results.made import pool
from tests.shared import shared_data


def made(efficiency: float, setup_s: float) -> pd.DataFrame:
    """Return transfers of 8 NICs of 25 GB/s that lose this much."""
    prompts = 2 ** np.arange(7, 16)
    size_bytes = prompts * BYTES_PER_TOKEN
    seconds = size_bytes / (efficiency * 200e9) + 5e-6 + setup_s
    return pd.DataFrame({"prompt_tokens": prompts, "bytes": size_bytes, "seconds": seconds})


def test_known_terms_are_found_again() -> None:
    fit = Fit.of(made(0.8, 2e-4))
    assert fit.overhead.nic_efficiency == pytest.approx(0.8, rel=1e-3)
    assert fit.overhead.nic_setup_s == pytest.approx(2e-4, rel=1e-3)
    assert fit.errors(held_out=True).mape < 0.1
    assert fit.errors(held_out=True, line_rate=True).bias == pytest.approx(-20, abs=2)


def test_transfers_without_overhead_have_none() -> None:
    overhead = Fit.of(made(1.0, 0.0)).overhead
    assert overhead.nic_efficiency == pytest.approx(1.0, rel=1e-3)
    assert overhead.nic_setup_s == pytest.approx(0.0, abs=1e-7)


def test_terms_do_not_depend_on_what_is_held_out() -> None:
    points = made(0.7, 4e-4)
    points.loc[points.prompt_tokens > LONGEST_FITTED, "seconds"] *= 2
    assert Fit.of(points).overhead.nic_efficiency == pytest.approx(0.7, rel=1e-3)


def test_the_simulator_moves_the_same_bytes_in_the_same_time() -> None:
    """Between two replicas of 8 GPUs, one after the other."""
    points = made(0.7, 4e-4)
    fit = Fit.of(points)
    prefill, decode = (
        replace(pool(role, gpu=GPU), tensor_parallel_size=PORTS) for role in ("prefill", "decode")
    )
    clock, landed = Clock(), []
    links = Links.between(clock, prefill, decode, Transfer(link="nic", overhead=fit.overhead), one_node=False)
    for number, size_bytes in enumerate(points.bytes):
        clock.call_at(
            float(number),
            lambda size_bytes=size_bytes: links.send(0, 0, size_bytes, lambda: landed.append(clock.now % 1)),
        )
    clock.run_until()
    assert landed == pytest.approx(fit.seconds().tolist())


def test_a_file_that_is_missing_or_has_too_few_transfers_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no such file"):
        transfers(tmp_path)
    path = tmp_path / TRANSFERS
    path.parent.mkdir()
    for prompts in ([128, 256], [128, 8192]):
        pd.DataFrame({"prompt_tokens": prompts, "transfer_ms": 1.0}).to_csv(path, index=False)
        with pytest.raises(SourceError, match="prompts on both sides of 4096 tokens"):
            transfers(tmp_path)


def test_longer_prompts_are_predicted() -> None:
    points = transfers(shared_data(*TRANSFERS.parts).parents[1])
    fit = Fit.of(points)
    longer = (points.prompt_tokens > LONGEST_FITTED).to_numpy()
    errors = fit.seconds()[longer] / points.seconds[longer] - 1
    assert len(errors) == 3
    assert errors.abs().max() <= 0.12
    assert fit.errors(held_out=True).mape <= 8
    assert 3 * fit.errors(held_out=True).mape < fit.errors(held_out=True, line_rate=True).mape


def test_refitting_gives_what_is_shipped(tmp_path: Path) -> None:
    (path,) = fit_transfer(shared_data(*TRANSFERS.parts).parents[1], tmp_path)
    shipped = yaml.safe_load((CONF / "transfer_overhead" / path.name).read_text())
    fitted = yaml.safe_load(path.read_text())
    for name in ("nic_efficiency", "nic_setup_s"):
        assert fitted[name] == pytest.approx(shipped[name], rel=0.005)
    for part in ("fitted", "held_out", "held_out_line_rate"):
        assert fitted["provenance"][part] == pytest.approx(shipped["provenance"][part], abs=0.11)
