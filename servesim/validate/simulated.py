"""A simulated run in the form of a measured one."""

from __future__ import annotations

import numpy as np

from servesim.results.result import Result
from servesim.validate.measured import Measured


def observed(result: Result, source: str = "simulated") -> Measured:
    """Return what a client would have measured of a simulated run: every request, in order of its number.

    The numbers are the order of sending in the workload, so row i is request i of the measured run that was
    replayed; retries are left out. Requests that did not complete have no latencies and are counted as
    failed.
    """
    first = result.requests["attempt"] == 0
    rows = result.requests[first].sort_values("request_id", kind="stable")
    done = (rows["status"] == "completed").to_numpy(bool)
    ttft_s, e2e_s = (
        np.where(done, rows[name].to_numpy(float, na_value=np.nan), np.nan) for name in ("ttft_s", "e2e_s")
    )
    return Measured(
        source=source,
        format="servesim",
        sent_s=rows["sent_s"].to_numpy(float),
        input_tokens=rows["input_tokens"].to_numpy(np.int64),
        output_tokens=rows["generated_tokens"].to_numpy(np.int64),
        ttft_s=ttft_s,
        e2e_s=e2e_s,
        itl_s=result.itl_s,
        client_queue_s=rows["client_queue_s"].to_numpy(float),
        failed=int(np.count_nonzero(~done)),
    )
