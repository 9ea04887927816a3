"""Everything fastdx raises: one class a cause, each also the built-in exception that fits."""

__all__ = [
    "CorruptFileError",
    "DuplicateWordError",
    "FastdxError",
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


class ParameterError(FastdxError, ValueError):
    """A parameter outside its domain."""


class InputTypeError(FastdxError, TypeError):
    """An argument of a type, or an array of a dtype, that cannot be meant."""


class UnknownWordError(FastdxError, KeyError):
    """A word that is not in the vocabulary."""

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


class FormatError(FastdxError, ValueError):
    """An input file that cannot be read as its format; names the line or word."""


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
