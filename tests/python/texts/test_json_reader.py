"""The reader of JSON records beside Python's `json`, on generated documents."""

import json
import random
from collections.abc import Iterator, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]  # json's own stubs leave it out

from fastdx._core import JsonBlock, JsonError, JsonFields, field_steps

COLUMNS = (("t",), ("u.t", "t"), ("m[].t",), ("m[].c", "m[].c.t"), ("l[][]", "u.v.t"),
           ("m[].u.t", "u.m[].t", "t"))  # fmt: skip
"""Fields that are asked for."""
NAMES = ("t", "u", "m", "c", "l", "x", "é", 'q"', "m[].t", "u.t", "\ud800", "v", "")
TEXTS = ("", "a", "tea & é", 'a "b" \\ c', "\n\t\x01", "😀", "\ud83d", "{}", "t", "a" * 40)
NUMBERS = ("0", "-0", "12", "1.50", "-0e+7", "1e400", "123456789012345678901234", "1E-3")
FAULTS = ('"', "\\", "{", "}", "[", "]", ",", ":", " ", "\t", "\x00", "0", "-", ".", "e", "NaN",
          "\\ud800",
          "\\n", "null", '"t":"x"', "\x0b", "\xa0", "é", "Infinity", "\\u12", "")  # fmt: skip


RANDOM = random.Random()


def string(text: str) -> str:
    """Write a string with escapes or without."""
    how = RANDOM.random()
    if how < 0.6 and not any("\ud800" <= c <= "\udfff" for c in text):
        return json.dumps(text, ensure_ascii=False)
    if how < 0.9:
        return json.dumps(text)
    each = (f"\\u{ord(c):04X}" if c < "\ud800" else json.dumps(c)[1:-1] for c in text)
    return f'"{"".join(each)}"'


def white() -> str:
    return RANDOM.choice(("", "", "", " ", "\t \r"))


def joined(parts: list[str], opening: str, closing: str) -> str:
    inner = f"{white()},{white()}".join(parts)
    return f"{opening}{white()}{inner}{white()}{closing}"


def of_fields(fields: Sequence[tuple[str, str]]) -> str:
    return joined([f"{string(k)}{white()}:{white()}{v}" for k, v in fields], "{", "}")


def value(depth: int = 0) -> str:
    """Write any value."""
    kind, count = RANDOM.randrange(8 if depth < 3 else 5), RANDOM.randrange(3)
    if kind < 2:
        return string(RANDOM.choice(TEXTS))
    if kind < 5:
        return RANDOM.choice(NUMBERS if kind == 2 else ("null", "true", "false", "null"))
    if kind == 5:
        return joined([value(depth + 1) for _ in range(count)], "[", "]")
    return of_fields([(RANDOM.choice(NAMES), value(depth + 1)) for _ in range(count)])


def asked(steps: Sequence[str]) -> str:
    """Write a value that has what a path leads to: at its end what may stand for text."""
    if not steps and RANDOM.random() < 0.8:
        return string(RANDOM.choice(TEXTS[:6]))
    if not steps:
        return RANDOM.choice(("null", "[]", '["x",null,[ "y"]]'))
    if RANDOM.random() < 0.05:
        return "null"
    if steps[0] == "":
        return joined([asked(steps[1:]) for _ in range(RANDOM.randrange(3))], "[", "]")
    return of_fields([(steps[0], asked(steps[1:]))])


def record_of(columns: Sequence[str]) -> str:
    """Write a record that has the columns, as a rule."""
    paths = {steps[0]: steps for steps in map(field_steps, reversed(columns))}
    fields = [(name, asked(steps[1:])) for name, steps in paths.items()]
    for _ in range(RANDOM.randrange(3)):
        other = (RANDOM.choice(NAMES), value())
        fields.insert(RANDOM.randrange(len(fields) + 1), other)
    return of_fields(fields)


def spoiled(text: str) -> str:
    """Put something in a place where it may be wrong."""
    at = RANDOM.randrange(len(text))
    return text[:at] + RANDOM.choice(FAULTS) + text[at + RANDOM.randrange(3) :]


class Refused(Exception):
    """By the rule, as it is written in docs/command.md."""


def texts_of(value: object, ways: list[list[str]], root: Sequence[str] = ()) -> Iterator[str]:
    """Yield what stands where the ways lead, of a value whose objects are lists of pairs."""
    if isinstance(value, tuple):
        names = {way[0] for way in ways if way and way[0]}
        present = {name for name, _ in value}
        if root:
            for column in root:
                if column not in present and field_steps(column)[0] not in present:
                    raise Refused
        elif not names or not names <= present:
            raise Refused
        for name, held in value:
            if name in names:
                yield from texts_of(held, [way[1:] for way in ways if way[:1] == [name]])
    elif root:
        raise Refused
    elif value is None:
        pass
    elif isinstance(value, str) and [] in ways:
        if any("\ud800" <= c <= "\udfff" for c in value):
            raise Refused
        yield value
    elif isinstance(value, list) and ([] in ways or any(way[0] == "" for way in ways)):
        into = [way[1:] for way in ways if way and way[0] == ""] or ways
        for item in value:
            yield from texts_of(item, into)
    else:
        raise Refused


def refuse(_: str) -> None:
    raise Refused


DECODER = json.JSONDecoder(
    object_pairs_hook=tuple, parse_constant=refuse, parse_int=float, parse_float=float
)


def expected(text: str, columns: Sequence[str]) -> list[str] | None:
    """Return the texts that Python's json finds; None if it or the rule refuses the record."""
    ways = [field_steps(column) for column in columns]
    ways += [[column] for column in columns if [column] not in ways]
    try:
        return list(texts_of(DECODER.decode(text), ways, columns))
    except (ValueError, Refused):
        return None


def copied(before: str, block: JsonBlock) -> int:
    """Check that a block is the text but for its strings; return how many there are."""
    texts = block.texts()
    pieces = block.replaced(["\x1a"] * len(texts)).decode().split('"\\u001a"')
    assert len(pieces) == len(texts) + 1
    at = 0
    for piece, found in zip(pieces, [*texts, None], strict=True):
        assert before.startswith(piece, at)
        at += len(piece)
        if found is not None:
            assert before[at] == '"'
            text, at = scanstring(before, at + 1, True)
            assert text == found
    assert at == len(before)
    return len(texts)


def test_what_python_finds_is_found_and_all_else_is_copied() -> None:
    """Of 30,000 records, in lines and in arrays."""
    for seed, columns in enumerate(COLUMNS):
        RANDOM.seed(seed)
        fields = JsonFields(columns, None, 1 << 20, 100)
        good: list[str] = []
        texts: list[str] = []
        refused = 0
        for at in range(5000):
            record = record_of(columns)
            if at % 4 == 0:
                record = spoiled(record)
            wanted = expected(record, columns)
            if wanted is None:
                refused += 1
                try:
                    fields.lines(record.encode(), 1, 0)
                except JsonError as error:
                    assert error.args[0].startswith(", line 1: ")
                else:
                    raise AssertionError(record)
            else:
                good.append(record)
                texts += wanted
        assert 500 < refused < 2250 and len(good) > 2750, (refused, len(good))
        lines = "\n".join(good)
        block = fields.lines(lines.encode(), 1, 0)
        assert block.texts() == texts
        assert copied(lines, block) == len(texts) > 500
        marked = block.replaced(["\x1a"] * len(texts)).decode().split("\n")
        # In pieces that end anywhere, within a letter, too.
        rest, document = ("[" + ",".join(good) + "]").encode(), fields.document()
        parts, found, more = b"", [], True
        while more:
            size = RANDOM.choice((1, 7, 60, 5000))
            piece, rest = rest[:size], rest[size:]
            block, more = document.feed(piece), piece != b""
            found += block.texts()
            parts += block.replaced(["\x1a"] * len(block))
        assert found == texts
        assert parts.decode() == "[" + ",".join(marked) + "]"
