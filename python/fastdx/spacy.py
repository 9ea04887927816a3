"""spaCy: a component that writes the private text to ``doc._.private`` (extra ``fastdx[spacy]``).

The document itself, and whatever is saved of it, still holds the text as it was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any

from fastdx._engines.recipe import Recipe, no_text, privatize_values
from fastdx.exceptions import FastdxError, UnknownWordError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

__all__ = ["Privatizer", "make"]


class Privatizer:
    """A component of spaCy's pipelines, added as ``nlp.add_pipe("fastdx", config={…})``.

    Parameters
    ----------
    recipe : Recipe
        The mechanism.
    entities : bool or list of str
        False: all words. True: only those of entities, or of entities with these labels; all else
        is released as it is, UNPROTECTED, and so is where the entities lie.
    """

    def __init__(self, recipe: Recipe, entities: bool | list[str]) -> None:
        """Keep what it takes."""
        from spacy.tokens import Doc

        self._recipe, self._entities = recipe, entities
        if not Doc.has_extension("private"):
            Doc.set_extension("private", default=None)

    def __call__(self, doc: Doc) -> Doc:
        """Write ``doc._.private``, a str; the document's own words stay."""
        return self._write([doc])[0]

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Write ``doc._.private`` of many documents, so many at a time."""
        docs = iter(stream)
        while batch := list(islice(docs, batch_size)):
            yield from self._write(batch)

    def _write(self, docs: list[Doc]) -> list[Doc]:
        try:
            with no_text():
                new = self._private(docs)
        except UnknownWordError as error:
            # spaCy takes a KeyError for a component that was not initialised.
            raise FastdxError(str(error)) from None
        for doc, text in zip(docs, new, strict=True):
            doc._.private = text
        return docs

    def _private(self, docs: list[Doc]) -> list[str]:
        mechanism = self._recipe.mechanism()
        if self._entities is False:
            # The words are fastdx's, not spaCy's: it is they that the guarantee counts.
            return list(privatize_values(mechanism, [doc.text for doc in docs]))
        return [mechanism.privatize_spans(doc.text, self._spans(doc)).text for doc in docs]

    def _spans(self, doc: Doc) -> list[tuple[int, int]]:
        labels = self._entities if isinstance(self._entities, list) else None
        return [
            (entity.start_char, entity.end_char)
            for entity in doc.ents
            if labels is None or entity.label_ in labels
        ]


def make(  # noqa: PLR0917 (spaCy's order, and names of the config)
    nlp: Language,
    name: str,
    epsilon: float | None,
    mechanism: str,
    index: str | None,
    entities: bool | list[str],
    parameters: dict[str, Any],
) -> Privatizer:
    """Make the component; spaCy calls it with the config of ``nlp.add_pipe``.

    Parameters
    ----------
    nlp, name : Language, str
        The pipeline, and what it calls the component.
    epsilon : float or None
        ε per unit of distance. Without it, ``Tem.recommended()``.
    mechanism : str
        A name in `fastdx.mechanisms.MECHANISMS`; 'tem' if left out.
    index : str or None
        A file that ``Tem.save`` or ``fastdx index build`` wrote, mapped once a process; the
        built-in words if left out.
    entities : bool or list of str
        As for `Privatizer`; all words if left out.
    parameters : dict
        The mechanism's other parameters, as JSON can write them.

    Raises
    ------
    ParameterError
        A parameter outside its domain.
    MissingFileError, CorruptFileError
        The index.
    """
    return Privatizer(Recipe.of(epsilon, mechanism, index, **parameters), entities)


if find_spec("spacy") is not None:
    from spacy.language import Language

    Language.factory(
        "fastdx",
        default_config={
            "epsilon": None,
            "mechanism": "tem",
            "index": None,
            "entities": False,
            "parameters": {},
        },
        func=make,
    )
