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

__all__ = ["Privatizer", "make"]


class Privatizer:
    """The component; ``nlp.add_pipe("fastdx", config={…})`` makes it.

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
        mechanism, entities = self._recipe.mechanism(), self._entities
        try:
            with no_text():
                if entities is False:
                    # fastdx's tokeniser, not spaCy's, because the guarantee counts its words.
                    new = mechanism.privatize([doc.text for doc in docs])
                else:
                    new = [
                        mechanism.privatize_spans(
                            doc.text,
                            [e for e in doc.ents if entities is True or e.label_ in entities],
                        ).text
                        for doc in docs
                    ]
        except UnknownWordError as error:
            # spaCy interprets a KeyError as a component that was not initialised.
            raise FastdxError(str(error)) from None
        for doc, text in zip(docs, new, strict=True):
            doc._.private = text
        return docs


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

    The mechanism is that of ``docs/engines.md``, with other parameters in `parameters`, as JSON
    values. `entities` is as for `Privatizer`; by default all words are replaced.
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
