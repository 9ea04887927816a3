"""JSON: records one a line, an array of them, or one.

Only the strings that are to be replaced are looked at. All else, white space and the form of
numbers too, is copied as it stands. `Scanner` finds the strings; whatever else finds them can take
its place.
"""

from __future__ import annotations

import codecs
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from json.decoder import scanstring  # type: ignore[attr-defined]  # json's own stubs leave it out
from json.encoder import encode_basestring
from typing import Any, BinaryIO, NoReturn

from fastdx._core import JsonFields, JsonStrings, Texts
from fastdx.cli.formats.base import BATCH, MOST_NAMES, Batch, Choice, Draw, Format, Released
from fastdx.cli.formats.opening import HINT, Lines, Opener, cut, decoded
from fastdx.cli.messages import CommandError

WHITE = " \t\n\r"


@dataclass
class Found:
    """The strings that were found in a block of JSON."""

    texts: list[str] = field(default_factory=list)
    """What they say."""
    spans: list[tuple[int, int]] = field(default_factory=list)
    """Where they stand in the block, quotes and all, in order and without overlap."""
    columns: list[int] = field(default_factory=list)
    """Which of the columns asked for each belongs to."""
    accounts: list[str] = field(default_factory=list)
    """Who pays for each, where accounts are asked for."""

    def cut(self, length: int) -> None:
        """Forget all but the first strings."""
        del self.texts[length:], self.spans[length:], self.columns[length:], self.accounts[length:]


class _NotJson(Exception):
    """The block is no JSON from a place on; perhaps because it ends there."""

    def __init__(self, at: int) -> None:
        self.at = at


class _Wrong(Exception):
    """A record that is JSON, and not what was asked for; with content to show perhaps."""

    def __init__(self, message: str, shown: str = "") -> None:
        super().__init__(message)
        self.shown = shown
        self.items: list[int] = []
        """In which item of a list it is wrong, counted from 1, and in which one within that."""

    def __str__(self) -> str:
        items = ", in it ".join(f"item {item}" for item in self.items)
        return f"{super().__str__()} ({items})" if items else super().__str__()


@dataclass
class _Node:
    """What is asked for at a place of a record, and below."""

    name: str = ""
    column: int | None = None
    """Strings here, and in lists of them, are this column; or it is the account."""
    fields: dict[str, _Node] = field(default_factory=dict)
    items: _Node | None = None
    """What is asked for in the items of a list."""

    def below(self) -> Iterator[int]:
        """Yield the columns here and below, the account too."""
        for _, column in self.places():
            yield column

    def places(self) -> Iterator[tuple[list[str], int]]:
        """Yield the steps from here to each column, and which it is."""
        if self.column is not None:
            yield [], self.column
        items = [] if self.items is None else [("", self.items)]
        for step, child in [*self.fields.items(), *items]:
            for steps, column in child.places():
                yield [step, *steps], column


ACCOUNT = -1
"""The account among the columns."""
BYTES_A_TEXT = 32
"""A record may hold one text for so many bytes that it may have: each takes memory of its own."""


def steps(path: str) -> list[str]:
    """Return the steps of a path, ``items[].text``: fields, and '' for the items of a list."""
    found: list[str] = []
    for part in path.split("."):
        name = part
        lists = 0
        while name.endswith("[]"):
            name, lists = name[:-2], lists + 1
        if not name:
            return [path]  # no path, but perhaps a name
        found += ([name] if name else []) + [""] * lists
    return found


def _tree(columns: Sequence[str], account: str | None) -> _Node:
    root = _Node()

    def plant(path: Sequence[str], column: int, shown: str) -> None:
        node, name = root, ""
        for step in path:
            name += "[]" if not step else f".{step}" if name else step
            if step:
                node = node.fields.setdefault(step, _Node(name))
            else:
                node.items = node.items or _Node(name)
                node = node.items
        if node.column not in (None, column):
            raise CommandError(f"{shown} is asked for twice")
        node.column = column

    asked = [*enumerate(columns), *([] if account is None else [(ACCOUNT, account)])]
    for column, path in asked:
        option = "--account-column" if column == ACCOUNT else "--column"
        parted = steps(path)
        plant(parted, column, f"{option} {path!r}")
        if parted != [path]:
            # A field may be called so.
            plant([path], column, f"{option} {path!r}")
    return root


def _refuse(constant: str) -> NoReturn:
    raise _Wrong("a number that JSON does not have", constant)


class Scanner:
    """Finds the strings of some fields in the text of JSON records.

    A record must have every field that is asked for: each object on the way to it has the next
    field, in every item of a list. Nothing is below null and an empty list. In the record itself
    a field whose name is the whole path will do.
    """

    def __init__(self, choice: Choice, left: Released) -> None:
        """Keep which fields; names of others are noted in `left`."""
        self.columns = choice.columns
        self.account = choice.account
        self._root = _tree(choice.columns, choice.account)
        self.longest = choice.longest
        self.most = choice.longest // BYTES_A_TEXT
        self._left = left.names
        # Values that stay are only passed over: numbers need not be read.
        self._skip: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder(
            parse_int=str, parse_float=str, parse_constant=_refuse
        ).scan_once  # type: ignore[attr-defined]  # json's own stubs leave it out

    def places(self) -> JsonFields:
        """Return the same fields for what finds them outside of the interpreter."""
        return JsonFields(list(self._root.places()))

    def record(self, text: str, start: int, found: Found) -> int:
        """Find the strings of the record that starts at a place; return where it ends.

        Raises
        ------
        _NotJson
            It is no JSON; or not all of it is there.
        _Wrong
            It is no record, or has not the fields.
        """
        if text[start : start + 1] != "{":
            if start >= len(text):
                raise _NotJson(start)
            self._over(text, start)
            raise _Wrong("not a JSON object")
        self._payers: set[str | None] = set()
        before = len(found.texts)
        self._end = before + self.most
        try:
            end = self._object(text, start, self._root, found, "")
        except IndexError:
            raise _NotJson(len(text)) from None
        except json.JSONDecodeError as e:
            raise _NotJson(e.pos) from None
        except (RecursionError, ValueError):
            raise _NotJson(start) from None
        if self.account is not None:
            found.accounts += [self._payer()] * (len(found.texts) - before)
        return end

    def _payer(self) -> str:
        """Return who pays for a record: everything on the way to the account names the same one."""
        names = [payer for payer in self._payers if payer is not None]
        if not names or len(names) < len(self._payers):
            raise self._no_account()
        if len(names) > 1:
            raise _Wrong(f"several accounts: field {self.account!r} holds {len(names)} names")
        return names[0]

    def _no_account(self) -> _Wrong:
        return _Wrong(f"no account: field {self.account!r} is missing or holds no name")

    def _check(self, text: str, start: int, node: _Node, there: set[str]) -> None:
        """Refuse an object that lacks a field which is asked for."""
        found = {column for name in there for column in node.fields[name].below()}
        missing = set(node.below()) - found - {node.column}
        if ACCOUNT in missing:
            raise self._no_account()
        if missing:
            self._missing(text, start, self.columns[min(missing)], node)

    def _missing(self, text: str, start: int, column: str, node: _Node) -> NoReturn:
        names = list(json.JSONDecoder(parse_int=str).raw_decode(text, start)[0])
        if node is not self._root or steps(column) != [column]:
            raise _Wrong(f"field {column!r} is not there", ", ".join(map(repr, names)))
        message = f"none of its {len(names)} fields is called {column!r}"
        raise _Wrong(message, ", ".join(map(repr, names)))

    def _over(self, text: str, at: int) -> int:
        """Pass over a value."""
        try:
            return self._skip(text, at)[1]
        except StopIteration as e:
            raise _NotJson(e.value) from None
        except json.JSONDecodeError as e:
            raise _NotJson(e.pos) from None
        except (RecursionError, ValueError):
            raise _NotJson(at) from None

    @staticmethod
    def _white(text: str, at: int) -> int:
        while text[at] in WHITE:
            at += 1
        return at

    def _key(self, text: str, at: int) -> tuple[str, int]:
        """Read a field's name; return it and where its value starts."""
        if text[at] != '"':
            raise _NotJson(at)
        key, at = scanstring(text, at + 1, True)
        if text[at] != ":":
            at = self._white(text, at)
            if text[at] != ":":
                raise _NotJson(at)
        at += 1
        return key, self._white(text, at) if text[at] in WHITE else at

    def _object(self, text: str, at: int, node: _Node, found: Found, path: str) -> int:
        there: set[str] = set()
        end = self._fields(text, at, node, found, path, there)
        if len(there) < len(node.fields):
            self._check(text, at, node, there)
        return end

    def _fields(  # noqa: PLR0917 (a step of `_object`)
        self, text: str, at: int, node: _Node, found: Found, path: str, there: set[str]
    ) -> int:
        """Go through the fields of an object; add the names of those asked for that are there."""
        fields, skip, left = node.fields, self._skip, self._left
        at = self._white(text, at + 1)
        if text[at] == "}":
            return at + 1
        while True:
            key, at = self._key(text, at)
            child = fields.get(key)
            if child is not None:
                at = self._value(text, at, child, found, f"{path}{key}.")
                there.add(key)
            else:
                if len(left) < MOST_NAMES:
                    left[path + key] = None
                try:
                    at = skip(text, at)[1]
                except StopIteration as e:
                    raise _NotJson(e.value) from None
            sign = text[at]
            if sign in WHITE:
                at = self._white(text, at)
                sign = text[at]
            at += 1
            if sign == "}":
                return at
            if sign != ",":
                raise _NotJson(at - 1)
            if text[at] in WHITE:
                at = self._white(text, at)

    def _value(self, text: str, at: int, node: _Node, found: Found, path: str) -> int:
        first = text[at]
        if node.column == ACCOUNT:
            return self._pays(text, at)
        if first == '"' and node.column is not None:
            value, end = scanstring(text, at + 1, True)
            if len(found.texts) == self._end:
                raise _Wrong(f"a record of more than {self.most} texts{HINT}")
            found.texts.append(value)
            found.spans.append((at, end))
            found.columns.append(node.column)
            return int(end)
        if first == "{" and node.fields:
            return self._object(text, at, node, found, path)
        if first == "[" and (node.items is not None or node.column is not None):
            return self._list(text, at, node, found, path)
        end = self._over(text, at)
        if text[at:end] == "null":
            if self.account is not None and ACCOUNT in node.below():
                self._payers.add(None)
            return end
        kinds = {'"': "a str", "{": "a dict", "[": "a list", "t": "a bool", "f": "a bool"}
        held = kinds.get(first, "a number")
        wanted = "text" if node.column is not None else "a dict" if node.fields else "a list"
        raise _Wrong(f"field {node.name!r} holds {held}, not {wanted}")

    def _pays(self, text: str, at: int) -> int:
        end = self._over(text, at)
        payer = json.loads(text[at:end])
        named = isinstance(payer, (str, int)) and not isinstance(payer, bool) and payer != ""
        self._payers.add(str(payer) if named else None)
        return end

    def _list(self, text: str, at: int, node: _Node, found: Found, path: str) -> int:
        # A column of text may hold lists of text.
        item = node.items or node
        at = self._white(text, at + 1)
        if text[at] == "]":
            return at + 1
        path = f"{path.removesuffix('.')}[]."
        for count in itertools.count(1):
            try:
                at = self._value(text, at, item, found, path)
            except _Wrong as e:
                e.items.insert(0, count)
                raise
            at = self._white(text, at) + 1
            if text[at - 1] == "]":
                break
            if text[at - 1] != ",":
                raise _NotJson(at - 1)
            at = self._white(text, at)
        return at


class _Lines(Batch):
    """Records one a line, found outside of the interpreter: what `Scanner` finds, it finds, too."""

    new: Texts | list[str]  # type: ignore[assignment]  # what `replaced` takes

    def __init__(self, name: str, block: JsonStrings, line: int, columns: Sequence[str]) -> None:
        self._name = name
        self._block = block
        self._line = line
        self._columns = columns

    def _draw(self, draw: Draw) -> None:
        self.new = draw.strings(self._block)

    def place(self, text: int) -> str:
        line, column = self._block.place(text) or (0, 0)
        return f"{self._name}, line {self._line + line}, column {self._columns[column]!r}"

    def written(self) -> bytes:
        """Return what is to be written."""
        return self._block.replaced(self.new)


class _Records(Batch):
    """Text of JSON, and the strings in it that are to be replaced."""

    def __init__(self, name: str, text: str, line: int, found: Found, scanner: Scanner) -> None:
        self._name = name
        self._text = text
        self._line = line
        self._found = found
        self._columns = scanner.columns
        self.texts = found.texts
        self.accounts = None if scanner.account is None else found.accounts

    def place(self, text: int) -> str:
        line = self._line + self._text.count("\n", 0, self._found.spans[text][0])
        return f"{self._name}, line {line}, column {self._columns[self._found.columns[text]]!r}"

    def written(self) -> bytes:
        """Return what is to be written."""
        return "".join(self._parts()).encode()

    def _parts(self) -> Iterator[str]:
        done, text = 0, self._text
        for (start, end), new in zip(self._found.spans, self.new, strict=True):
            yield text[done:start]
            yield encode_basestring(new)
            done = end
        yield text[done:]


class JsonLines(Format):
    """Objects, one a line."""

    name = "jsonl"
    suffixes = (".jsonl", ".ndjson")

    def __init__(self, choice: Choice) -> None:
        """Make the scanner."""
        super().__init__(choice)
        self.left.content = True
        self._scanner = Scanner(choice, self.left)
        self._fields = None if choice.account is not None else self._scanner.places()

    def read(self, name: str, opener: Opener) -> Iterator[Batch]:
        """Read a file."""
        with opener.open(name) as source:
            lines = cut(source, name, BATCH, longest=self.choice.longest)
            # By `map`, which does not keep the bytes of a block while others work on its records.
            yield from map(partial(self._records, name), lines)

    def _records(self, name: str, lines: Lines) -> Batch:
        return self._found(name, lines.data, lines.line) or self._block(name, *lines)

    def _found(self, name: str, data: bytes, line: int) -> Batch | None:
        """Return the records of a block; None where their form is not beyond doubt."""
        if self._fields is None:
            return None
        lines = data.removeprefix(codecs.BOM_UTF8) if line == 1 else data
        if not lines.endswith(b"\n"):
            lines += b"\n"
        block = JsonStrings.find(lines, self._fields, MOST_NAMES, self._scanner.most)
        if block is None:
            return None
        names = self.left.names
        for other in block.others:
            if len(names) < MOST_NAMES:
                names[other] = None
        return _Lines(name, block, line, self.choice.columns)

    def _block(self, name: str, data: bytes, line: int, offset: int) -> Batch:
        """Return the records of a block, or say what is wrong with them."""
        text = decoded(data, name, offset, line)
        if line == 1:
            text = text.removeprefix("\ufeff")
        if not text.endswith("\n"):
            text += "\n"
        return _Records(name, text, line, self._scan(name, text, line), self._scanner)

    def _scan(self, name: str, text: str, line: int) -> Found:
        found, at, record = Found(), 0, self._scanner.record
        while at < len(text):
            end = text.index("\n", at)
            start = at
            while text[start] in WHITE and start < end:
                start += 1
            if start < end:
                try:
                    after = record(text, start, found)
                    while text[after] in WHITE and after < end:
                        after += 1
                    # What is beyond the line's end, or short of it, is no record a line.
                    if after != end:
                        raise _NotJson(min(after, end))
                except _NotJson as e:
                    place = f"{name}, line {line + text.count(chr(10), 0, at)}"
                    where = f" at character {min(e.at, end) - at}" if e.at > start else ""
                    raise CommandError(f"{place}: not JSON{where}") from None
                except _Wrong as e:
                    place = f"{name}, line {line + text.count(chr(10), 0, at)}"
                    raise CommandError(f"{place}: {e}", e.shown) from None
            at = end + 1
        return found

    def write(self, batch: _Lines | _Records, out: BinaryIO) -> None:
        """Write the records."""
        out.write(batch.written())


class Json(Format):
    """An array of objects; or one object, or several, one after the other."""

    name = "json"
    suffixes = (".json",)
    joins = False

    def __init__(self, choice: Choice) -> None:
        """Make the scanner."""
        super().__init__(choice)
        self.left.content = True
        self._scanner = Scanner(choice, self.left)

    def read(self, name: str, opener: Opener) -> Iterator[Batch]:
        """Read a file, a record at a time: it may be of any size, a record is bounded."""
        with opener.open(name) as source:
            yield from _Document(name, source, self._scanner).batches()

    def write(self, batch: _Records, out: BinaryIO) -> None:
        """Write the records."""
        out.write(batch.written())


class _Document:
    """JSON that is read as it comes."""

    def __init__(self, name: str, source: BinaryIO, scanner: Scanner) -> None:
        self._name = name
        self._source = source
        self._longest = scanner.longest
        self._scanner = scanner
        self._decoder = codecs.getincrementaldecoder("utf-8")("strict")
        self._offset = 0
        self._text = ""
        self._line = 1
        self._ended = False
        self._found = Found()

    def _more(self, start: int, what: str) -> None:
        """Read on, where what starts at a place may be longer."""
        room = self._longest - (len(self._text) - start)
        if room < 0:
            raise self._error(f"{what} of more than {self._longest} characters{HINT}", start)
        # Twice as much as there is: what is cut off is looked at again.
        data = self._source.read(min(max(BATCH, len(self._text)), room + 1))
        pending = len(self._decoder.getstate()[0])
        try:
            text = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as e:
            at = self._offset - pending + e.start
            line = self._line + self._text.count("\n") + data[: e.start].count(b"\n")
            raise CommandError(
                f"{self._name}: byte {at} is not UTF-8 (line {line}); --encoding takes others"
            ) from None
        if self._offset == 0:
            text = text.removeprefix("\ufeff")
        self._offset += len(data)
        self._text += text
        self._ended = not data

    def _sign(self, at: int) -> tuple[str, int]:
        """Return the next sign that is not white, or '' at the end, and where it stands."""
        start = at
        while True:
            while at < len(self._text) and self._text[at] in WHITE:
                at += 1
            if at < len(self._text) or self._ended:
                return self._text[at : at + 1], at
            self._more(start, "white space")

    def _record(self, at: int) -> int:
        """Find the strings of the record that starts here; return where it ends."""
        before = len(self._found.texts)
        while True:
            try:
                return self._scanner.record(self._text, at, self._found)
            except _NotJson as e:
                self._found.cut(before)
                if self._ended:
                    raise self._error("not JSON", e.at) from None
                self._more(at, "not JSON, or a record")
            except _Wrong as e:
                raise self._error(str(e), at, e.shown) from None

    def _error(self, message: str, at: int, shown: str = "") -> CommandError:
        line = self._line + self._text.count("\n", 0, at)
        return CommandError(f"{self._name}, line {line}: {message}", shown)

    def _batch(self, at: int) -> _Records:
        """Cut off what was read, up to a place."""
        text, self._text = self._text[:at], self._text[at:]
        line, found = self._line, self._found
        self._line += text.count("\n")
        self._found = Found()
        return _Records(self._name, text, line, found, self._scanner)

    def batches(self) -> Iterator[_Records]:
        first, at = self._sign(0)
        if first not in ("[", "{"):
            message = "neither an array of records nor a record" if first else "no record: empty"
            raise self._error(message, at)
        array = first == "["
        if array:
            first, at = self._sign(at + 1)
        while first not in ("", "]"):
            at = self._record(at)
            if at >= BATCH:
                yield self._batch(at)
                at = 0
            first, at = self._sign(at)
            if array and first == ",":
                first, at = self._sign(at + 1)
                if first != "{":
                    raise self._error("not a JSON object" if first else "not JSON", at)
            elif array and first not in ("]", ""):
                raise self._error("not JSON", at)
        if array:
            if first != "]":
                raise self._error("not JSON: the array does not end", at)
            first, at = self._sign(at + 1)
        if first:
            raise self._error("not JSON: something follows the end", at)
        yield self._batch(at)
