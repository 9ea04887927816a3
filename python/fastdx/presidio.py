"""Presidio: an anonymizer operator (extra ``fastdx[presidio]``).

Only what the analyzer found is replaced. The rest of the text is released as it is, and so is
where the findings lie.
"""

from __future__ import annotations

from typing import Any

from presidio_anonymizer.operators import Operator, OperatorType

from fastdx._engines.recipe import Recipe, no_text
from fastdx.exceptions import FastdxError, ParameterError

__all__ = ["FastdxOperator"]

OWN = ("entity_type",)
"""What Presidio adds to an operator's parameters."""


class FastdxOperator(Operator):  # type: ignore[misc]
    """The operator 'fastdx': replaces the words of an entity, with a policy for every kind.

    Its parameters are those of the mechanism: ``epsilon`` (without it, ``Tem.recommended()``),
    ``mechanism`` ('tem'), ``index`` (a file that ``Tem.save`` wrote), ``oov`` and the others. They
    are numbers and strings, so a policy can be kept as JSON.

    Examples
    --------
    >>> from fastdx.presidio import FastdxOperator
    >>> from presidio_anonymizer import AnonymizerEngine, OperatorConfig
    >>> from presidio_anonymizer import RecognizerResult
    >>> engine = AnonymizerEngine()
    >>> engine.add_anonymizer(FastdxOperator)
    >>> found = [RecognizerResult("PERSON", 5, 9, 1.0)]
    >>> policy = {"PERSON": OperatorConfig("fastdx")}
    >>> engine.anonymize("Dear Anna, thanks.", found, policy).text.startswith("Dear ")
    True
    """

    def operate(self, text: str, params: dict[str, Any] | None = None) -> str:
        """Replace the words of an entity.

        Parameters
        ----------
        text : str
            What stands in the text.
        params : dict
            The mechanism's parameters.

        Returns
        -------
        str
            What takes its place.
        """
        with no_text():
            private: str = _recipe(params).mechanism().privatize(text)
        return private

    def validate(self, params: dict[str, Any] | None = None) -> None:
        """Check the parameters before any text is touched.

        Raises
        ------
        ParameterError
            A parameter that is missing, unknown or outside its domain.
        MissingFileError, CorruptFileError
            The index.
        """
        try:
            _recipe(params)
        except FastdxError:
            raise
        except TypeError as error:
            raise ParameterError(f"the parameters of the operator fastdx: {error}") from None

    def operator_name(self) -> str:
        """Return what a policy calls it."""
        return "fastdx"

    def operator_type(self) -> OperatorType:
        """Return that it anonymizes: nothing leads back."""
        return OperatorType.Anonymize


def _recipe(params: dict[str, Any] | None) -> Recipe:
    given = {name: value for name, value in (params or {}).items() if name not in OWN}
    return Recipe.of(**given)
