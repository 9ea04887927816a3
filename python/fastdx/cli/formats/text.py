"""Plain text, cut at white space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import BinaryIO

from fastdx.cli.formats.batches import BATCH, Privatise, Released, unknown
from fastdx.cli.formats.opening import LONGEST, decode, open_input
from fastdx.cli.messages import CommandError, Progress
from fastdx.exceptions import UnknownWordError


def plain_text(
    names: Sequence[str],
    out: BinaryIO,
    private: Callable[[], Privatise],
    progress: Progress,
    *,
    by_line: bool = False,
) -> Released:
    """Privatise plain text, keeping everything between the words byte for byte.

    `private` makes a function for each file, which is one text that comes in pieces.
    """
    # No word crosses white space; cutting there changes nothing.
    what = "a line end" if by_line else "white space"
    between = (b"\n",) if by_line else (b" ", b"\n", b"\t")

    def written(function: Privatise, piece: bytes, name: str, offset: int) -> bytes:
        text = decode(piece, name, offset)
        try:
            return function([text])[0].encode()
        except UnknownWordError as e:
            at = piece[: e.start or 0].count(b"\n") + lines + 1
            raise unknown(e, f"{name}, line {at}") from None

    for name in names:
        function = private()
        with open_input(name, progress) as source:
            rest, offset, lines = b"", 0, 0
            while block := source.read(BATCH):
                block = rest + block
                cut = max(block.rfind(c) for c in between) + 1
                if cut == 0 and len(block) > LONGEST:
                    raise CommandError(f"{name}: {len(block)} bytes without {what} are no text")
                rest = block[cut:]
                if cut:
                    out.write(written(function, block[:cut], name, offset))
                offset += cut
                lines += block.count(b"\n", 0, cut)
            out.write(written(function, rest, name, offset))
    return Released([])
