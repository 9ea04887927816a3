"""Everything fastdx raises: one class a cause, each also the built-in exception that fits."""

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
    "UnknownWordError",
    "VectorError",
    "WordIdError",
]


class FastdxError(Exception):
    """Anything that fastdx raises."""


class FastdxWarning(UserWarning):
    """Something that is no error and that the caller should know of."""


class ParameterError(FastdxError, ValueError):
    """A parameter outside its domain."""


class InputTypeError(FastdxError, TypeError):
    """An argument of a type, or an array of a dtype, that cannot be meant."""


class UnknownWordError(FastdxError, KeyError):
    """A word that is not in the vocabulary.

    Where the word came from a text the message says its place and not the word.
    """

    word: str | None = None
    """The word."""
    text: int | None = None
    """Of many texts, which the word is in, counted from 0."""
    start: int | None = None
    """The byte (of UTF-8) of the text where the word starts."""

    def __str__(self) -> str:
        """Return the message (KeyError would quote it)."""
        return str(self.args[0]) if self.args else ""


class WordIdError(FastdxError, IndexError):
    """A word id that is out of range."""


class ShapeError(FastdxError, ValueError):
    """An array of the wrong shape."""


class VectorError(FastdxError, ValueError):
    """A vector that is not finite or no point of the metric's space."""


class DuplicateWordError(FastdxError, ValueError):
    """A word that stands twice in a vocabulary."""

    word: str | None = None
    """The word."""


class FormatError(FastdxError, ValueError):
    """An input file that cannot be read as its format; names the line, shows no content."""

    line: int | None = None
    """The line, counted from 1, where the format has lines."""
    word: str | None = None
    """The word or field that is wrong, where there is one."""


class CorruptFileError(FastdxError, ValueError):
    """A file of ours that is damaged, truncated, extended or foreign."""


class FileError(FastdxError, OSError):
    """The operating system refused a file."""


class MissingFileError(FileError, FileNotFoundError):
    """A file that does not exist."""


class TooLargeError(FastdxError, MemoryError):
    """A result that would not fit in the memory allowed for it; says how large it is."""


class SystemResourceError(FastdxError, OSError):
    """The operating system gave no entropy or no threads."""
