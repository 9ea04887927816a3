"""Fixtures of the Python tests."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

import fastdx
from helpers import SHARED
from helpers.command import Command, Said, run
from helpers.spaces import normal
from helpers.specs import every_spec

# The same cases each time, so that a run that passed passes again.
settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def pytest_report_header() -> str:
    if SHARED.is_dir():
        return f"real data: {SHARED}"
    return "real data: ../shared is not there; the tests that want it are skipped"


@pytest.fixture(scope="session")
def shared() -> Path:
    if not SHARED.is_dir():
        pytest.skip("../shared is not there")
    return SHARED


@pytest.fixture(scope="session")
def small() -> fastdx.Embedding:
    return normal(50, 4, 1)


@pytest.fixture(scope="session")
def sure(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Options under which every known word becomes itself, and others [MASK]."""
    path = tmp_path_factory.mktemp("sure") / "sure.fdx"
    fastdx.Embedding(["cat", "dog", "bird"], np.eye(3) * 100).save(path)
    return ["--embedding", str(path), "--mechanism", "laplace", "--epsilon", "1e6", "--oov", "mask",
            "--allow-unchanged"]  # fmt: skip


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return every_spec(tmp_path_factory.mktemp("specs"))


@pytest.fixture
def command() -> Command:
    """Run the command: all that it says, where it ends with the code."""

    def called(*args: object, code: int = 0, stdin: str | bytes = b"") -> Said:
        done = run(*args, code=code, stdin=stdin)
        return Said(done.stdout, done.stderr)

    return called


EUCLIDEAN = [m for m in fastdx.mechanisms.MECHANISMS.values() if m.default_space == "english"]


@pytest.fixture(params=EUCLIDEAN, ids=lambda m: m.__name__)
def mechanism(request: pytest.FixtureRequest) -> type:
    kind: type = request.param
    return kind
