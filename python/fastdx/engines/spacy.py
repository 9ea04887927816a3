"""spaCy: a component that writes the private text to ``doc._.private`` (extra ``fastdx[spacy]``).

The document itself, and every file saved from it, still holds the original text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any

from fastdx.engines._recipe import Recipe, no_text
from fastdx.exceptions import FastdxError, UnknownWordError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

__all__ = ["Privatizer"]


class Privatizer:
    """The component; ``nlp.add_pipe("fastdx", config={…})`` makes it.

    Parameters
    ----------
    nlp, name : Language, str
        spaCy's.
    entities : bool or list of str
        False (default): replace all words. True: replace only the words of entities. A list: only
        those of entities with these labels. The rest of the text, and the places of the entities,
        are released UNPROTECTED.
    parameters : dict
        The mechanism: see ``docs/engines.md``. The values are those of JSON.
    """

    def __init__(
        self, nlp: Language, name: str, entities: bool | list[str], parameters: dict[str, Any]
    ) -> None:
        """Store the parameters and register the extension ``private``."""
        from spacy.tokens import Doc

        self._recipe, self._entities = Recipe.of(**parameters), entities
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
            # fastdx's tokeniser, not spaCy's, because the guarantee counts its words.
            new = (
                self._recipe.privatize([doc.text for doc in docs])
                if self._entities is False
                else [self._within_entities(doc) for doc in docs]
            )
        except UnknownWordError as error:
            # spaCy interprets a KeyError as a component that was not initialised.
            raise FastdxError(str(error)) from None
        for doc, text in zip(docs, new, strict=True):
            doc._.private = text
        return docs

    @no_text()
    def _within_entities(self, doc: Doc) -> str:
        wanted: Any = self._entities
        found = [e for e in doc.ents if wanted is True or e.label_ in wanted]
        return self._recipe.mechanism().privatize_spans(doc.text, found).text


if find_spec("spacy") is not None:
    from spacy.language import Language

    Language.factory(
        "fastdx", default_config={"entities": False, "parameters": {}}, func=Privatizer
    )
