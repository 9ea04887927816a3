"""Describes the machine on which a figure was measured."""

from __future__ import annotations

import os
import re
from pathlib import Path


def _told() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    return cpuinfo.read_text("utf-8") if cpuinfo.exists() else ""


def instructions() -> str:
    """The vector instructions for which fastdx has code of its own."""
    flags = re.search(r"^flags\s*: (.+)$", _told(), re.MULTILINE)
    has = flags[1].split() if flags else []
    wide = [name for flag, name in (("avx512f", "AVX-512"), ("amx_int8", "AMX")) if flag in has]
    return " and ".join(wide) or "no AVX-512"


def machine() -> str:
    """Return the cores, the processor and its instructions as a phrase."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    model = re.search(r"^model name\s*: (.+)$", _told(), re.MULTILINE)
    return f"{cores} cores{f' of {model[1].strip()}' if model else ''} with {instructions()}"
