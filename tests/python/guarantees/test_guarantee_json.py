"""A guarantee as JSON: one form from Python and from the command, as its schema describes it."""

import json
from typing import Any

import jsonschema
import pytest

from fastdx import Guarantee, Tem, from_spec
from fastdx.lab import audit
from helpers import ROOT
from helpers.spaces import normal
from helpers.specs import NAMES

SPACE = normal(60, 3, 5)
SCHEMA = json.loads((ROOT / "docs" / "reference" / "guarantee.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for wrong in ({}, {"epsilon": 1.0}):
        assert not VALIDATOR.is_valid(wrong)


@pytest.mark.parametrize("name", [*NAMES, "seeded"])
def test_every_mechanism_gives_what_the_schema_describes(
    name: str, specs: dict[str, dict[str, Any]]
) -> None:
    mechanism = from_spec({**specs["tem"], "seed": 1} if name == "seeded" else specs[name])
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
    if not mechanism._has_history:
        assert found["unchanged"]["mean"] == mechanism.unchanged.mean
    assert (found["certificate"] is not None) == (name == "tem-certified")
    assert (found["void"] is not None) == (found["slack"] is None) == (name == "seeded")
    told = guarantee.with_bits().to_dict()
    VALIDATOR.validate(told)
    assert (told["bits"]["value"] is None) == (name == "seeded" or not mechanism.has_law)
    same = {key: told[key] for key in told if key not in ("bits", "sentence", "for_users")}
    assert same == {key: found[key] for key in same}


def test_a_certificate_is_the_same_alone_and_within_its_guarantee() -> None:
    tem = Tem(SPACE, 2.0, cover=10, certified=True)
    alone, guarantee = audit.certify(tem), tem.guarantee.to_dict()
    VALIDATOR.validate(guarantee)
    within = guarantee["certificate"]
    assert alone.to_dict() == within
    for key in ("epsilon", "nominal", "gamma", "output", "vocabulary", "cover", "method"):
        assert within[key] == getattr(alone, key), key
    assert tuple(within["pair"]) == alone.pair and within["cover"] is not None


def test_further_exceptions_are_in_it() -> None:
    found = Guarantee(Tem(SPACE, 2.0), ["more"]).to_dict()
    VALIDATOR.validate(found)
    assert found["exceptions"][-1] == "more" and "Not covered: more." in found["sentence"]
