"""Presidio: an anonymizer operator (extra ``fastdx[presidio]``).

The operator replaces only entities that the analyzer finds. The rest of the text is released
unchanged, and the output shows the places of the entities.

Presidio gives an operator the found text alone, so a finding over half a word releases the other
half. `Mechanism.privatize_spans` takes the analyzer's results as they are and widens them.
"""

from __future__ import annotations

from typing import Any

from presidio_anonymizer.operators import Operator, OperatorType

from fastdx.engines._recipe import Recipe
from fastdx.exceptions import FastdxError, ParameterError

__all__ = ["FastdxOperator"]


class FastdxOperator(Operator):  # type: ignore[misc]
    """The operator 'fastdx', which replaces the words of entities; each kind can have its policy.

    Its parameters are those of the mechanism: see ``docs/engines.md``. They are numbers and
    strings, so JSON can store a policy.
    """

    def operate(self, text: str, params: dict[str, Any] | None = None) -> str:
        """Replace the words of an entity."""
        return str(_recipe(params).privatize(text))

    def validate(self, params: dict[str, Any] | None = None) -> None:
        """Check the parameters before any text is touched; raises as `Recipe.of`."""
        try:
            _recipe(params)
        except FastdxError:
            raise
        except TypeError as error:
            raise ParameterError(f"the parameters of the operator fastdx: {error}") from None

    def operator_name(self) -> str:
        """Return the operator's name in a policy."""
        return "fastdx"

    def operator_type(self) -> OperatorType:
        """Return the type Anonymize, because nothing reverses the operator."""
        return OperatorType.Anonymize


def _recipe(params: dict[str, Any] | None) -> Recipe:
    # Presidio adds the kind of the entity to the parameters of an operator.
    given = {name: value for name, value in (params or {}).items() if name != "entity_type"}
    return Recipe.of(**given)
