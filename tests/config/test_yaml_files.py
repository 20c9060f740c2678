"""Files read by the parser in C say what OmegaConf reads in them; mistakes are told as Hydra tells them."""

import os
from pathlib import Path

import pytest
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra._internal.sources_registry import SourcesRegistry
from omegaconf import OmegaConf

from servesim.config.groups import conf_dir
from servesim.config.search_path import own_folder_first
from servesim.config.yaml_files import ReadOnce, read

#: The shipped files; of the profiles, which are long and all alike, one.
SHIPPED = sorted(
    path.relative_to(conf_dir()).as_posix()
    for path in conf_dir().rglob("*.yaml")
    if path.parent.name != "calibration" or path.stem == "a100-sxm-80gb-vllm"
)

ODD = {
    "twice": "a: 1\na: 2\n",
    "no_yaml": "a: [1\n",
    "tab": "a:\n\tb: 1\n",
    "list": "[1, 2]\n",
    "text": "words\n",
    "number": "3\n",
    "empty": "",
    "tag": "a: !!python/object:os.system {}\n",
    "header": "# @package a b c\nx: 1\n",
    "latin": b"a: \xff\n",
}


def test_shipped_files_say_what_hydra_reads_in_them() -> None:
    place = f"file://{conf_dir()}"
    for name in SHIPPED:
        ours, hydras = (source("main", place).load_config(name) for source in (ReadOnce, FileConfigSource))
        assert ours == hydras, name
        assert OmegaConf.to_yaml(ours.config) == OmegaConf.to_yaml(hydras.config), name


def test_values_are_of_the_types_that_omegaconf_knows(tmp_path: Path) -> None:
    text = (
        "# @package _global_\na: 1e-1\nb: 2026-01-31\nc: 1_000\nd: yes\ne: ~\nf: &x [.5, 0x10]\ng: *x\n2: 0"
    )
    (tmp_path / "x.yaml").write_text(text)
    file = read(tmp_path / "x.yaml")
    assert file is not None
    assert file.values == OmegaConf.to_container(OmegaConf.create(text))
    assert ReadOnce("p", f"file://{tmp_path}").load_config("x").header["package"] == "_global_"


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_is_told_as_hydra_tells_it(name: str, tmp_path: Path) -> None:
    text = ODD[name]
    (tmp_path / f"{name}.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    told = []
    for source in (ReadOnce, FileConfigSource):
        try:
            told.append(str(source("own", f"file://{tmp_path}").load_config(name)))
        except Exception as error:
            told.append(f"{type(error)}: {error}")
    assert told[0] == told[1]


def test_a_file_that_changes_is_read_again_and_nobody_changes_what_others_read(tmp_path: Path) -> None:
    file, source = tmp_path / "x.yaml", ReadOnce("own", f"file://{tmp_path}")
    file.write_text("a: {b: 1}")
    stat = file.stat()
    source.load_config("x").config["a"]["b"] = 9
    assert source.load_config("x").config == {"a": {"b": 1}}
    file.write_text("a: {b: 2}")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # as some copying tools do
    assert source.load_config("x").config == {"a": {"b": 2}}
    file.unlink()
    with pytest.raises(Exception, match="Config not found"):
        source.load_config("x")


def test_other_programs_of_the_process_have_hydras_own_source() -> None:
    with own_folder_first(None):
        assert SourcesRegistry.instance().resolve("file") is ReadOnce
    assert SourcesRegistry.instance().resolve("file").__name__ == "FileConfigSource"
