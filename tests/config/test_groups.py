"""The options that the configuration's folders offer."""

from pathlib import Path

import pytest

from servesim.check import ConfigError
from servesim.config.groups import Groups, conf_dir


@pytest.fixture
def groups(tmp_path: Path) -> Groups:
    for name in ("gpu/small.yaml", "gpu/large.yaml", "gpu/mine/odd.yaml", "load/shape/flat.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return Groups([tmp_path])


def test_a_group_is_a_folder(groups: Groups) -> None:
    assert "gpu" in groups
    assert "load/shape" in groups
    assert not any(name in groups for name in ("cpu", "", "..", "/", "gpu/..", "gpu/small.yaml"))


def test_options_are_its_files(groups: Groups) -> None:
    assert groups.options("gpu") == ["large", "small"]
    assert groups.problem("gpu", "small") is None
    assert groups.problem("gpu", "mine/odd") is None
    assert groups.problem("gpu@pool.gpu", "small") is None


def test_another_option_is_told_with_the_known_ones(groups: Groups) -> None:
    assert str(groups.problem("gpu", "smal")) == (
        "gpu = 'smal': there is no such option; did you mean small?"
    )
    assert str(groups.problem("gpu", "smal2")) == (
        "gpu = 'smal2': there is no such option; they are large or small (nearest: small)"
    )
    assert str(groups.problem("gpu", "../load/shape/flat")).startswith(
        "gpu = '../load/shape/flat': there is no such option"
    )
    assert str(groups.problem("cpu/x", "y")) == "cpu/x = 'y': there is no such group of options"
    assert str(groups.problem("gpu/shape", "flat")).endswith("; did you mean load/shape?")
    assert str(groups.problem("gpus", "small")).endswith("; did you mean gpu?")


def test_a_folder_of_the_users_adds_to_the_shipped_ones(groups: Groups) -> None:
    both = Groups.of(groups.folders[0])
    assert {"small", "h100-sxm"} < set(both.options("gpu"))
    assert both.folders[-1] == conf_dir()


def test_a_folder_without_options_is_refused(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    for name in ("config.yaml", "0/config.yaml", "mine.yaml"):
        (tmp_path / name).touch()
    with pytest.raises(ConfigError, match="holds no options"):
        Groups.of(tmp_path)
    with pytest.raises(ConfigError, match="holds no options"):
        Groups.of(tmp_path, "other")
    assert Groups.of(tmp_path, "mine").folders[0] == tmp_path


def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        Groups.of(tmp_path / "none")
