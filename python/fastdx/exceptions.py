"""The exceptions of fastdx: one class per cause, each also the built-in exception that fits."""

__all__ = [
    "CorruptFileError",
    "DuplicateWordError",
    "FastdxError",
    "FastdxWarning",
    "FileError",
    "FormatError",
    "InputTypeError",
    "MissingFileError",
    "ParameterError",
    "ShapeError",
    "SystemResourceError",
    "TooLargeError",
    "UnchangedWarning",
    "UnknownWordError",
    "UnknownWordsWarning",
    "VectorError",
    "WordIdError",
]


class FastdxError(Exception):
    """The base class of all exceptions of fastdx."""


class FastdxWarning(UserWarning):
    """A fact that is no error but that the caller should know."""


class UnchangedWarning(FastdxWarning):
    """A policy under which more than half of the common words come back as they were.

    Silence it by ``warnings.simplefilter("ignore", fastdx.UnchangedWarning)``.
    """


class UnknownWordsWarning(FastdxWarning):
    """Texts of which more than half of the words are not in the vocabulary."""


class ParameterError(FastdxError, ValueError):
    """A parameter outside its domain."""


class InputTypeError(FastdxError, TypeError):
    """An argument of a wrong type, or an array of a wrong dtype."""


class UnknownWordError(FastdxError, KeyError):
    """A word that is not in the vocabulary.

    For a word from a text, the message gives the place, and not the word.
    """

    word: str | None = None
    """The word."""
    text: int | None = None
    """The index, from 0, of the text with the word, if there are many texts."""
    start: int | None = None
    """The byte of the text, in UTF-8, at which the word starts."""

    def __str__(self) -> str:
        """Return the message (KeyError would quote it)."""
        return str(self.args[0]) if self.args else ""


class WordIdError(FastdxError, IndexError):
    """A word id that is out of range."""


class ShapeError(FastdxError, ValueError):
    """An array of the wrong shape."""


class VectorError(FastdxError, ValueError):
    """A vector that is not finite or not a point of the metric's space."""


class DuplicateWordError(FastdxError, ValueError):
    """A word that occurs twice in a vocabulary."""

    word: str | None = None
    """The word."""


class FormatError(FastdxError, ValueError):
    """An input file that does not have its format; the message names the line, not its content."""

    line: int | None = None
    """The line, from 1, if the format has lines."""
    word: str | None = None
    """The wrong word or field, if there is one."""


class CorruptFileError(FastdxError, ValueError):
    """A fastdx file that is damaged, truncated or extended, or a file that is no fastdx file."""


class FileError(FastdxError, OSError):
    """The operating system refused a file."""


class MissingFileError(FileError, FileNotFoundError):
    """A file that does not exist."""


class TooLargeError(FastdxError, MemoryError):
    """A result that exceeds the memory allowed for it; the message gives its size."""


class SystemResourceError(FastdxError, OSError):
    """The operating system gave no entropy or no threads."""
