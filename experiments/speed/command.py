"""Measure servesim as a command, in a process of its own, its results on disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from experiments.speed.sample import Sample

#: What the installed script ``servesim`` does; from a clone there may be no script.
_SERVESIM = "import sys; from servesim.cli import main; sys.exit(main())"
#: Linux counts resident memory in KiB, macOS in bytes.
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


def command(overrides: list[str], requests: int) -> Sample:
    """Return the sample of one command line; its ``cpu_s`` is what the run says of itself."""
    with TemporaryDirectory() as folder:
        words = [*overrides, f"workload.requests={requests}", f"hydra.run.dir={folder}"]
        process = subprocess.Popen([sys.executable, "-c", _SERVESIM, *words], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"servesim {' '.join(words)} ended with status {process.returncode}")
        files = list(Path(folder).iterdir())
        simulator = json.loads(Path(folder, "summary.json").read_text(encoding="utf-8"))["simulator"]
        return Sample(
            simulator["cpu_s"],
            used.ru_maxrss * _RSS_UNIT,
            requests,
            command_s=used.ru_utime + used.ru_stime,
            file_bytes=sum(file.stat().st_size for file in files),
        )
