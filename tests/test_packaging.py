"""The configuration travels: in a wheel, in a wheel built through the sdist, and in an editable install."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.shared import ROOT

#: What a build reads; a copy of it is built, so that nothing is left behind in the clone.
FOLDERS = ("servesim", "conf", "calibration", "experiments", "tests")
SOURCES = (*FOLDERS, "README.md", "LICENSE", "Makefile", "pyproject.toml", ".gitignore")


class Builds(NamedTuple):
    clone: Path
    sdist: Path
    wheel: Path
    wheel_of_sdist: Path


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    folder = tmp_path_factory.mktemp("packaging")
    clone = folder / "clone"
    clone.mkdir()
    run("cp", "-r", *(ROOT / name for name in SOURCES), clone, cwd=folder)
    build = (sys.executable, "-m", "build", "--no-isolation", clone)
    run(*build, "--wheel", "--outdir", folder / "direct", cwd=folder)
    run(*build, "--outdir", folder / "through", cwd=folder)  # an sdist, and a wheel made from it
    (wheel,) = (folder / "direct").glob("*.whl")
    (wheel_of_sdist,) = (folder / "through").glob("*.whl")
    (sdist,) = (folder / "through").glob("*.tar.gz")
    return Builds(clone, sdist, wheel, wheel_of_sdist)


def environment(folder: Path) -> Path:
    """Make a virtual environment that sees the packages of this one, and return its folder of programs."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "parent.pth").write_text("\n".join(path for path in sys.path if path.endswith("-packages")))
    return folder / "bin"


@pytest.mark.parametrize("way", ["wheel", "wheel_of_sdist", "editable"])
def test_each_way_of_installing_finds_the_configuration(way: str, builds: Builds, tmp_path: Path) -> None:
    programs = environment(tmp_path / way)
    what = ("--editable", builds.clone) if way == "editable" else (getattr(builds, way),)
    pip = (sys.executable, "-m", "pip", "--python", programs / "python", "install", "--quiet")
    run(*pip, "--no-deps", "--no-build-isolation", "--no-index", *what, cwd=tmp_path)
    where = "from servesim.config.groups import conf_dir; print(conf_dir())"
    conf = Path(run(programs / "python", "-c", where, cwd=tmp_path).strip())
    assert (conf.parent == builds.clone) == (way == "editable")
    assert {"config.yaml", "model", "gpu", "scheduler"} <= {path.name for path in conf.iterdir()}
    printed = run(programs / "servesim", "scheduler=static", "workload.requests=20", cwd=tmp_path)
    assert "20 injected = 20 completed" in printed


def test_the_sdist_holds_all_that_the_tests_need(builds: Builds) -> None:
    with tarfile.open(builds.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    shipped = {path.relative_to(ROOT).as_posix() for path in (ROOT / "conf").rglob("*.yaml")}
    assert shipped <= names
    assert {"LICENSE", "README.md", "Makefile", "pyproject.toml", "tests/test_packaging.py"} <= names


def collected(folder: Path) -> set[str]:
    """Return the tests that pytest finds in a clone, slow ones too; some need what is not installed."""
    quiet = ("--collect-only", "--quiet", "-p", "no:cacheprovider", "-n", "0", "-m", "", "--assert=plain")
    printed = run(sys.executable, "-m", "pytest", *quiet, cwd=folder)
    return {line for line in printed.splitlines() if "::" in line}


def modules(folder: Path) -> dict[str, str]:
    """Return the texts of the modules below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.py")}


def test_every_test_of_the_sdist_can_be_collected_from_it(
    builds: Builds, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with tarfile.open(builds.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    assert modules(unpacked / "tests") == modules(ROOT / "tests")
    there = collected(unpacked)
    assert len(there) > 1000
    assert {item.nodeid for item in request.session.items} <= there  # all, where all tests are run


def test_the_wheel_holds_the_package_and_nothing_else(builds: Builds) -> None:
    with zipfile.ZipFile(builds.wheel) as archive:
        names = set(archive.namelist())
    with zipfile.ZipFile(builds.wheel_of_sdist) as archive:
        assert set(archive.namelist()) == names
    shipped = {f"servesim/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "conf").rglob("*.yaml")}
    pages = {"servesim/report/page.css", "servesim/report/page.js"}
    assert shipped | pages | {"servesim/py.typed", "servesim/conf/config.yaml"} <= names
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"servesim"}
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_no_run_leaves_anything_that_git_would_add() -> None:
    ignored = subprocess.run(
        ["git", "check-ignore", "runs/x", "sweeps/x", ".venv/x", "dist/x"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if ignored.returncode == 128:
        pytest.skip("not a git checkout")
    assert ignored.stdout.split() == ["runs/x", "sweeps/x", ".venv/x", "dist/x"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
