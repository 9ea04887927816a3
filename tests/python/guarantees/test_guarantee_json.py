"""A guarantee as JSON: one form from Python and from the command, as its schema describes it."""

import json
from collections.abc import Callable

import jsonschema
import numpy as np
import pytest

from fastdx import (
    Embedding,
    FiniteLaw,
    Guarantee,
    HyperbolicLaplace,
    Mahalanobis,
    Mechanism,
    MultivariateLaplace,
    NeighborResponse,
    Tem,
    Vickrey,
)
from fastdx.lab import audit
from fastdx.mechanisms import MECHANISMS
from helpers import ROOT
from helpers.spaces import normal

SCHEMA = json.loads((ROOT / "docs" / "reference" / "guarantee.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def words() -> Embedding:
    return normal(60, 3, 5)


def law() -> FiniteLaw:
    return FiniteLaw(words(), np.full((60, 60), 1.0) + np.eye(60))


MADE: dict[str, Callable[[], Mechanism]] = {
    "tem": lambda: Tem(words(), 2.0),
    "cover": lambda: Tem(words(), 2.0, cover=10, exclude=["w3"]),
    "certified": lambda: Tem(words(), 2.0, certified=True),
    "certified cover": lambda: Tem(words(), 2.0, cover=10, certified=True),
    "seeded": lambda: Tem(words(), 2.0, seed=1),
    "kept": lambda: Tem(words(), 2.0, oov="keep", skip=["w1"], consistent=True),
    "laplace": lambda: MultivariateLaplace(words(), 2.0),
    "mahalanobis": lambda: Mahalanobis(words(), 2.0),
    "vickrey": lambda: Vickrey(words(), 2.0),
    "response": lambda: NeighborResponse(words(), 2.0),
    "hyperbolic": lambda: HyperbolicLaplace(Embedding.default("nouns"), 30.0),
    "finite": law,
}


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for wrong in ({}, {"epsilon": 1.0}):
        assert not VALIDATOR.is_valid(wrong)


def test_every_mechanism_is_tried() -> None:
    assert {type(make()) for make in MADE.values()} >= {*MECHANISMS.values()}


@pytest.mark.parametrize("name", MADE)
def test_every_mechanism_gives_what_the_schema_describes(name: str) -> None:
    mechanism = MADE[name]()
    guarantee = mechanism.guarantee
    found = guarantee.to_dict()
    VALIDATOR.validate(found)
    assert found == json.loads(guarantee.to_json())
    for key in ("metric", "delta", "void", "scope", "outputs", "theorem", "arithmetic",
                "exceptions"):  # fmt: skip
        assert found[key] == getattr(guarantee, key), key
    assert found["epsilon"] == guarantee.epsilon == mechanism.epsilon
    assert found["sentence"] == str(guarantee)
    assert found["for_users"] == guarantee.describe("user")
    assert found["unchanged"]["mean"] == mechanism.unchanged.mean
    assert (found["certificate"] is not None) == name.startswith("certified")
    assert (found["void"] is not None) == (found["slack"] is None) == (name == "seeded")
    if len(mechanism.space) < 100:
        told = guarantee.with_bits().to_dict()
        VALIDATOR.validate(told)
        assert (told["bits"]["value"] is None) == (name == "seeded" or not mechanism.has_law)
        same = {key: told[key] for key in told if key not in ("bits", "sentence", "for_users")}
        assert same == {key: found[key] for key in same}


def test_a_certificate_is_the_same_alone_and_within_its_guarantee() -> None:
    tem = Tem(words(), 2.0, cover=10, certified=True)
    alone = audit.certify(tem)
    within = tem.guarantee.to_dict()["certificate"]
    assert alone.to_dict() == within
    for key in ("epsilon", "nominal", "gamma", "output", "vocabulary", "cover", "method"):
        assert within[key] == getattr(alone, key), key
    assert tuple(within["pair"]) == alone.pair and within["cover"] is not None


def test_further_exceptions_are_in_it() -> None:
    found = Guarantee(Tem(words(), 2.0), ["more"]).to_dict()
    VALIDATOR.validate(found)
    assert found["exceptions"][-1] == "more" and "Not covered: more." in found["sentence"]
