"""Fixtures of the Python tests."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

import fastdx
from helpers import SHARED

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
    rng = np.random.default_rng(1)
    words = [f"w{i}" for i in range(50)]
    return fastdx.Embedding(words, rng.normal(size=(50, 4)))


EUCLIDEAN = [m for m in fastdx.mechanisms.MECHANISMS.values() if m.default_space == "english"]


@pytest.fixture(params=EUCLIDEAN, ids=lambda m: m.__name__)
def mechanism(request: pytest.FixtureRequest) -> type:
    return request.param
