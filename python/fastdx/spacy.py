"""spaCy: a component that writes the private text to ``doc._.private`` (extra ``fastdx[spacy]``).

The document itself, and every file saved from it, still holds the original text.
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
    from spacy.tokens import Doc, Span

__all__ = ["Privatizer", "make"]


class Privatizer:
    """A component of spaCy's pipelines, added as ``nlp.add_pipe("fastdx", config={…})``.

    Parameters
    ----------
    recipe : Recipe
        The mechanism.
    entities : bool or list of str
        False: replace all words. True: replace only the words of entities. A list: only those of
        entities with these labels. The rest of the text, and the places of the entities, are
        released UNPROTECTED.
    """

    def __init__(self, recipe: Recipe, entities: bool | list[str]) -> None:
        """Store the parameters and register the extension ``private``."""
        from spacy.tokens import Doc

        self._recipe, self._entities = recipe, entities
        if not Doc.has_extension("private"):
            Doc.set_extension("private", default=None)

    def __call__(self, doc: Doc) -> Doc:
        """Write ``doc._.private``, a str; the document's own words do not change."""
        return self._write([doc])[0]

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Write ``doc._.private`` of many documents, `batch_size` at a time."""
        docs = iter(stream)
        while batch := list(islice(docs, batch_size)):
            yield from self._write(batch)

    def _write(self, docs: list[Doc]) -> list[Doc]:
        try:
            with no_text():
                new = self._private(docs)
        except UnknownWordError as error:
            # spaCy interprets a KeyError as a component that was not initialised.
            raise FastdxError(str(error)) from None
        for doc, text in zip(docs, new, strict=True):
            doc._.private = text
        return docs

    def _private(self, docs: list[Doc]) -> list[str]:
        mechanism = self._recipe.mechanism()
        if self._entities is False:
            # fastdx's tokeniser, not spaCy's, because the guarantee counts its words.
            return list(privatize_values(mechanism, [doc.text for doc in docs]))
        return [mechanism.privatize_spans(doc.text, self._spans(doc)).text for doc in docs]

    def _spans(self, doc: Doc) -> list[Span]:
        labels = self._entities if isinstance(self._entities, list) else None
        return [entity for entity in doc.ents if labels is None or entity.label_ in labels]


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
        The pipeline, and the component's name in it.
    epsilon : float or None
        ε per unit of distance. None makes ``Tem.recommended()``.
    mechanism : str
        A name in `fastdx.mechanisms.MECHANISMS`; by default 'tem'.
    index : str or None
        A file from ``Tem.save`` or ``fastdx index build``, which each process maps once; by default
        the built-in words.
    entities : bool or list of str
        As for `Privatizer`; by default all words.
    parameters : dict
        The mechanism's other parameters, as JSON values.

    Raises
    ------
    ParameterError
        A parameter lies outside its domain.
    MissingFileError, CorruptFileError
        The index cannot be read.
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
