"""Writes files atomically: a temporary file replaces the target when it is complete."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from fastdx.exceptions import FileError

PACKED = (".gz", ".zst")
"""The endings of names of compressed files."""

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def zstd(stream: Any, kind: str, name: str) -> Any:
    """Return a stream that unpacks ('r') or packs ('w') by zstd; the name is for errors."""
    try:
        import pyarrow
    except ImportError:
        message = "zstd needs pyarrow: pip install 'fastdx[parquet]'"
        raise FileError(None, message, name) from None
    made = pyarrow.CompressedInputStream if kind == "r" else pyarrow.CompressedOutputStream
    return made(pyarrow.PythonFile(stream, kind), "zstd")


@contextlib.contextmanager
def packed(out: BinaryIO, name: str) -> Iterator[BinaryIO]:
    """Compress the output if the name ends in ``.gz`` or ``.zst``."""
    suffix = Path(name).suffix.lower()
    if suffix == ".gz":
        import gzip

        with gzip.GzipFile(filename="", fileobj=out, mode="wb", compresslevel=6, mtime=0) as zipped:
            yield cast(BinaryIO, zipped)
    elif suffix == ".zst":
        # pyarrow closes what it writes to.
        with os.fdopen(os.dup(out.fileno()), "wb") as own, zstd(own, "w", name) as stream:
            yield stream
    else:
        yield out


@contextlib.contextmanager
def open_output(
    name: str | None,
    inputs: Sequence[str] = (),
    *,
    then: Callable[[BinaryIO], object] = lambda _: None,
) -> Iterator[BinaryIO]:
    """Open standard output, or a temporary file that gets the name when it is complete.

    Only the owner can read the temporary file. If the platform allows it, the file has no name
    until it is complete, so even a killed process leaves no partial file. At the end it gets the
    mode of the file that it replaces, or else the mode that the umask and the modes of the inputs
    allow. It is compressed if the name ends in ``.gz`` or ``.zst``. Just before it gets the name,
    `then` is called with the complete file, which it may read. Errors of writing have the name.
    """
    if name is None or name == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        target = Path(name)
        if target.exists() and not (target.is_file() or target.is_dir()):
            # A pipe or a device cannot be replaced, so it is written to.
            with target.open("wb") as special:
                yield special
            return
        target = target.resolve()  # replaces the file behind a link, not the link
        with _temporary(target, _mode_of(target, inputs)) as plain:
            with packed(plain, name) as out:
                yield out
            plain.seek(0)
            then(plain)
    except OSError as e:
        if e.errno is not None and e.filename is None:
            e.filename = name
        raise


def _mode_of(target: Path, inputs: Sequence[str]) -> int:
    """Return the mode of the file that is replaced, or what umask and inputs allow."""
    if target.is_file():
        return stat.S_IMODE(target.stat().st_mode)
    umask = os.umask(0o077)
    os.umask(umask)
    mode = 0o666 & ~umask
    for name in inputs:
        of = os.fstat(0) if name == "-" else Path(name).stat()
        if stat.S_ISREG(of.st_mode):
            mode &= of.st_mode
    return mode | stat.S_IRUSR | stat.S_IWUSR


@contextlib.contextmanager
def _temporary(target: Path, mode: int) -> Iterator[BinaryIO]:
    """Yield a file that becomes `target`, with this mode, unless an exception is raised."""
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    temporary = target.with_name(f".{target.name}.{os.urandom(8).hex()}.tmp")
    try:
        fd = _unnamed(target.parent)
        named = fd is None
        with open(os.open(temporary, _NEW, 0o600) if fd is None else fd, "w+b") as plain:  # noqa: PTH123 (a descriptor)
            yield plain
            plain.flush()
            os.fsync(plain.fileno())
            if not named:
                # With dst_dir_fd, which counts for no absolute path, Python calls linkat, which
                # follows the link to the open file.
                open_file = f"/proc/self/fd/{plain.fileno()}"
                os.link(open_file, temporary, dst_dir_fd=plain.fileno(), follow_symlinks=True)
        temporary.chmod(mode)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _unnamed(folder: Path) -> int | None:
    """Return a descriptor of a file without a name, or None if the platform has none."""
    if not hasattr(os, "O_TMPFILE") or not Path("/proc/self/fd").is_dir():
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
    except OSError:
        return None  # not on this file system; the caller's next attempt reports other errors
