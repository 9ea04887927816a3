"""Presidio's operator against the real thing: findings in, a policy for every kind."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip(
    "presidio_anonymizer",
    reason="presidio-anonymizer is not installed: pip install 'fastdx[presidio]'",
)

from presidio_anonymizer import AnonymizerEngine
from presidio_anonymizer.entities import OperatorConfig, RecognizerResult

from fastdx.engines.presidio import FastdxOperator

TEXT = "Dear king, your tea is ready."
FOUND = [RecognizerResult("PERSON", 5, 9, 0.9), RecognizerResult("DRINK", 16, 19, 0.9)]


@pytest.fixture
def engine() -> AnonymizerEngine:
    engine = AnonymizerEngine()
    engine.add_anonymizer(FastdxOperator)
    return engine


@pytest.fixture
def own(swap: dict[str, Any]) -> dict[str, Any]:
    """The parameters after a journey through JSON."""
    given = {**swap, "index": str(swap["index"])}
    return dict(json.loads(json.dumps(given)))


def test_a_policy_for_every_kind(engine: AnonymizerEngine, own: dict[str, Any]) -> None:
    policy = {"PERSON": OperatorConfig("fastdx", own), "DRINK": OperatorConfig("redact", {})}
    assert engine.anonymize(TEXT, FOUND, policy).text == "Dear queen, your  is ready."
    policy = {"DEFAULT": OperatorConfig("fastdx", own)}
    new = engine.anonymize(TEXT, FOUND, policy)
    assert new.text == "Dear queen, your coffee is ready."
    assert [(i.start, i.end, i.operator) for i in sorted(new.items, key=lambda i: i.start)] == [
        (5, 10, "fastdx"), (17, 23, "fastdx"),
    ]  # fmt: skip
    loose = {
        "PERSON": OperatorConfig("fastdx", {"epsilon": 0.001}),
        "DRINK": OperatorConfig("fastdx", own),
    }
    outputs = {engine.anonymize(TEXT, FOUND, loose).text for _ in range(10)}
    # 20,000 words, nearly uniform: nine repetitions in ten have a probability below 1e-30.
    assert len(outputs) > 1 and all("coffee is ready" in text for text in outputs)
