"""The dialects that there are."""

from __future__ import annotations

from typing import Literal

from servesim.results.dialects.aiperf import AIPERF
from servesim.results.dialects.guidellm import GUIDELLM
from servesim.results.dialects.inferencex import INFERENCEX
from servesim.results.dialects.vllm import VLLM

DialectName = Literal["vllm", "aiperf", "guidellm", "inferencex"]

#: Every dialect by its name.
DIALECTS = {dialect.name: dialect for dialect in (VLLM, AIPERF, GUIDELLM, INFERENCEX)}
#: The dialect that every summary speaks: it needs no section of its own.
PLAIN: DialectName = "vllm"
