"""What a study says, and what is refused in it."""

from pathlib import Path

import pytest
import yaml

from servesim import ConfigError
from servesim.config.groups import Groups
from servesim.sweeps.study import Load, Study, load_study, study_of


def faults(**values: object) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        study_of(values)
    return [str(problem) for problem in caught.value.problems]


def test_an_empty_study_is_one_configuration_with_one_seed() -> None:
    assert study_of({}) == Study()
    assert Study().each_seed == (0,)


def test_seeds_are_a_number_or_a_list() -> None:
    assert study_of({"seeds": 3}).each_seed == (0, 1, 2)
    assert study_of({"seeds": [7, 1]}).each_seed == (1, 7)


def test_a_study_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    study = Study(
        question="?",
        overrides=("seed=x",),
        variants={"a": ("b=c",), "d": ()},
        axes=("gpu=x,y",),
        load=Load(points=5),
        seeds=(1, 2),
        compare=("x",),
        baseline="a",
    )
    (tmp_path / "study.yaml").write_text(yaml.safe_dump({"name": "n", **study.as_dict()}))
    assert Study.read(tmp_path / "study.yaml").as_dict() == study.as_dict()


def test_everything_that_is_wrong_is_told_at_once() -> None:
    assert faults(sedes=3, axes="gpu=a,b", load={"pints": 3}, seeds=0) == [
        "sedes = 3: unknown key; did you mean seeds?",
        "load.pints = 3: unknown key; did you mean load.points?",
        "axes = 'gpu=a,b': must be a list, each of it text",
        "seeds = 0: must be at least 1 and at most 10000 (seeds)",
    ]
    assert faults(seeds=[1, 1], variants={"a": "b=c", "base": [3]}, baseline="bas") == [
        "variants.a = 'b=c': must be a name with a list of overrides",
        "variants.base = [3]: must be a name with a list of overrides",
        "seeds = (1, 1): must be different: the same seed gives the same run",
        "baseline = 'bas': must be a or base (nearest: base)",
    ]
    assert faults(seeds=[]) == ["seeds = (): must be a number of seeds, or seeds of at least 0"]
    assert faults(seeds=[-1]) == ["seeds = (-1,): must be a number of seeds, or seeds of at least 0"]
    assert len(faults(load={"points": 2}, variants=3)) == 2


def test_seeds_are_kept_as_64_bits() -> None:
    assert study_of({"seeds": [2**63 - 1]}).each_seed == (2**63 - 1,)
    assert any("below 2^63" in fault for fault in faults(seeds=[2**63]))


@pytest.mark.parametrize(
    "key", ["seed", "slo.attainment", "cluster.gpus", "workload.requests", "gpu.usd_per_hour", "x", ""]
)
def test_a_load_is_a_key_of_the_traffic(key: str) -> None:
    (fault,) = faults(load={"key": key})
    assert fault.startswith(f"load.key = {key!r}: is no load; must be workload.arrivals.rate_rps")


def test_a_study_of_ones_own_may_build_on_another_one(tmp_path: Path) -> None:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "first.yaml").write_text("seeds: 2\naxes: ['gpu=l40s,h100-sxm']\n")
    (tmp_path / "experiment" / "second.yaml").write_text("defaults: [first]\nquestion: why?\n")
    study = load_study(["experiment=second", "experiment.seeds=5"], Groups.of(tmp_path), tmp_path)
    assert study == Study(question="why?", axes=("gpu=l40s,h100-sxm",), seeds=5)


@pytest.mark.parametrize(
    "text", ["variants: {a: [x=1], a: [x=2]}", "seeds: [1", "variants: 3", "variants: {1: [x=1]}"]
)
def test_a_file_that_says_nothing_sensible_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text(text)
    with pytest.raises(ConfigError):
        load_study(["experiment=mine"], Groups.of(tmp_path), tmp_path)


@pytest.mark.parametrize(
    "said",
    [b"", b"[1]", b"seeds: [1", b"\xff\xfe", b"a: !!python/object:os.system {}", b"1: 2", b"sedes: 3", b"x"],
)
def test_a_study_beside_a_table_that_cannot_be_read_is_named(said: bytes, tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_bytes(said)
    with pytest.raises(ConfigError) as caught:
        Study.read(path)
    assert [problem.path for problem in caught.value.problems] == [str(path)]


def test_a_study_that_does_not_exist_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="batching_frontier"):
        load_study(["experiment=batching_frontir"], Groups.of(None))


def test_a_baseline_needs_variants() -> None:
    (fault,) = faults(axes=["scheduler=static,continuous"], baseline="static")
    assert fault.startswith("baseline = 'static': needs variants")
