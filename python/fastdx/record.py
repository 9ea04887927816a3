"""A release record: a page about a release that a data-protection officer reads and signs."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator
from decimal import ROUND_CEILING, Decimal, localcontext
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from fastdx._core import ChannelCore, Cover, Guarantee, MechanismCore, __version__
from fastdx._shared.laws import deniable
from fastdx._shared.rounded import down, up
from fastdx._types import Unchanged
from fastdx.exceptions import InputTypeError, ParameterError

if TYPE_CHECKING:
    from fastdx.budget import Ledger

__all__ = ["page"]

COMMON_WORDS = 1000
"""The number of first words of a vocabulary from which pairs are chosen."""
FUNCTION_WORDS = 100
"""The number of first words of a vocabulary that are mostly function words like "the"."""
COMPARED_WORDS = 150
"""The number of words whose pairs are all compared."""
LINE = "_" * 30
"""The empty line of a field that people fill in."""
DENIED_FACTOR = 2.0
"""γ of plausible deniability, as `choose_epsilon` has it by default."""
MONEY_DIGITS = 6
"""The digits of an account's spending: more than an ε has, since charges add up."""
HOPELESS_FACTOR = 1e4
"""From this factor on, the promise is said to hide nothing."""


def pairs(guarantee: Guarantee) -> list[tuple[str, str, float]]:
    """Choose three pairs of common words by growing bound: nearest, a middle one, farthest.

    Each has its bound in nats, arithmetic included. There are fewer if the vocabulary has fewer.
    """
    found = sorted(
        (guarantee.bound([a], [b]) + guarantee.slack, at, a, b)
        for at, (a, b) in enumerate(combinations(_common(guarantee), 2))
    )
    places = dict.fromkeys([0, (len(found) - 1) // 2, len(found) - 1]) if found else ()
    return [(a, b, bound) for bound, _, a, b in (found[place] for place in places)]


def page(guarantee: Guarantee, ledger: Ledger | None = None, account: str | None = None) -> str:
    """Write the page of `Guarantee.describe` for a reviewer; it holds words, but no text."""
    if account is not None and ledger is None:
        raise ParameterError("ledger must be given with account, got None")
    if ledger is not None and not hasattr(ledger, "entries"):
        raise InputTypeError(f"ledger must be a Ledger, not {type(ledger).__name__}")
    mechanism = guarantee._mechanism
    sections = (
        *_top(guarantee, mechanism),
        "## What is protected, and against whom",
        *_protected(guarantee, mechanism),
        "## The promise in numbers",
        *_numbers(guarantee, mechanism),
        "## Singling out, linkability, inference",
        _three_tests(guarantee, mechanism),
        "## What is not anonymous",
        _not_anonymous(guarantee),
        "## Budget used",
        _budget(ledger, account),
        _LAW,
        _BLANKS,
    )
    # A line that begins with white space continues the line before it.
    return "\n\n".join(re.sub(r"\n +", " ", section) for section in sections) + "\n"


def _table(rows: dict[str, object]) -> str:
    lines = [f"| {what} | {value} |" for what, value in rows.items()]
    return "\n".join(["| what | value |", "|---|---|", *lines])


def _top(guarantee: Guarantee, mechanism: MechanismCore) -> Iterator[str]:
    yield f"# Release record: texts changed by {type(mechanism).__name__}"
    if guarantee.void is not None:
        yield f"""\
> **DO NOT SIGN. NOTHING IS PROTECTED: {_text(guarantee.void)}.** What follows says how the
  mechanism is made. It promises nothing."""
    elif _releases_words(guarantee, mechanism):
        yield """\
> **SOME WORDS ARE RELEASED AS THEY ARE.** The list under "What is not anonymous" names them. This
  page promises nothing for them."""
    warning = Unchanged(*mechanism._unchanged()).warning
    if warning is not None:
        if mechanism._has_history:
            warning = f"without a history, {warning}"
        yield f"> **WARNING: {_text(warning)}.**"
    certificate = guarantee.certificate
    yield _table({
        "software": f"fastdx {__version__}",
        "mechanism": _text(repr(mechanism)),
        "the same as data, as in the channel card": f"`{_spec(mechanism)}`",
        "vocabulary": f"{len(mechanism.space):,} words, taken to be public",
        "distance": _text(guarantee.metric),
        "ε, for each unit of distance": _ceiling(guarantee.epsilon),
        "δ": _ceiling(guarantee.delta),
        **({} if certificate is None else {"certificate": _text(str(certificate))}),
        "why it holds": _text(guarantee.theorem),
        "arithmetic": _text(guarantee.arithmetic),
        "what arithmetic adds to an exponent, a word": _ceiling(guarantee.slack),
    })  # fmt: skip


def _spec(mechanism: MechanismCore) -> str:
    """Return the Spec of the card, as JSON that a cell of a table can hold."""
    spec = json.dumps(json.loads(mechanism._card())["spec"], ensure_ascii=False)
    return spec.replace("|", r"\u007c").replace("`", r"\u0060")


_DRAWN: dict[bool | str, str] = {
    False: "- Each word is replaced by a word that is drawn at random.",
    True: """\
- Each different word of a text is replaced by a word that is drawn at random.
- So the output shows which words of a text are equal.""",
    "call": """\
- Each different word of a call is replaced by a word that is drawn at random.
- So the output shows which words are equal, also in different texts of the call.""",
}


def _releases_words(guarantee: Guarantee, mechanism: MechanismCore) -> bool:
    """Return whether words are released unchanged, by the mechanism or outside of spans."""
    around = len(guarantee.exceptions) > len(Guarantee(mechanism).exceptions)
    return around or bool(mechanism.skip) or mechanism.oov == "keep"


def _protected(guarantee: Guarantee, mechanism: MechanismCore) -> Iterator[str]:
    if guarantee.void is not None:
        yield f"Nothing is protected against anybody: {_text(guarantee.void)}."
        return
    lines = []
    if _releases_words(guarantee, mechanism):
        lines.append("- This is about the words that are not released as they are.")
    but = f", except with probability {_ceiling(guarantee.delta)}" if guarantee.delta else ""
    what = "different words" if mechanism.consistent else "words"
    lines.append(f"""\
{_DRAWN[mechanism.consistent]}
- **Protected:** which word of the vocabulary was written at a place.
- **Against:** everyone who sees the output. The reader may know the mechanism, ε, the vocabulary,
  and anything else about the person. The reader may compute without limit.
- **Not against:** those who see the original texts, or who control the machine that replaces the
  words.
- **The promise:** take any two words at distance d. No output is more than
  e^({_ceiling(guarantee.epsilon)}·d) times as likely for one word as for the other{but}.
- **Texts:** the factors of all {what} in which two texts differ multiply. A long text is protected
  less than a short one.""")
    if guarantee.outputs:
        lines.append(f"- **Outputs:** {_text(guarantee.outputs)}")
    if guarantee.unknown is not None:
        lines.append(f"""\
- **Unknown words:** they are replaced at random. Whether a word was in the vocabulary shows by a
  factor of at most {_factor(guarantee.unknown)}.""")
    yield "\n".join(lines)


def _numbers(guarantee: Guarantee, mechanism: MechanismCore) -> Iterator[str]:
    yield """\
These bounds are computed from the mechanism, for common words of its vocabulary, and rounded up.
  Suppose that a reader knows that one of two words was written, and holds both for equally likely.
  The last column says how sure one output can make the reader."""
    found = pairs(guarantee)
    differ = len(found) == 3 and found[0][2] < found[-1][2]
    names = [" (nearest)", " (middle)", " (farthest)"] if differ else [""] * len(found)
    rows = [f"| {_text(a)}, {_text(b)}{name} | {_factor(bound)} | {_sure(bound)} |"
            for name, (a, b, bound) in zip(names, found, strict=True)]  # fmt: skip
    yield "\n".join([
        "| two words | the odds change by a factor of at most | how sure the reader can become |",
        "|---|---|---|", *(rows or ["| fewer than two words | – | – |"]),
    ])  # fmt: skip
    if max((bound for *_, bound in found), default=0.0) > math.log(HOPELESS_FACTOR):
        yield """\
Where the factor is large or missing, the promise alone does not hide which of the two words was
  written."""
    unchanged = Unchanged(*mechanism._unchanged())
    how = f"counted in {unchanged.draws:,} draws a word" if unchanged.draws else "computed"
    before = (
        " It leaves out what was released before a word, which changes how often it comes back."
    )
    history = before if mechanism._has_history else ""
    yield f"""\
Measured, not proved: {_percent(100 * unchanged.mean)} of common words come back as they were. The
  worst word that was found comes back with a probability of {_percent(100 * unchanged.worst)}.
  This is {how}, for {unchanged.words:,} words, and rounded up.{history}"""
    bits = guarantee.to_dict()["bits"]
    if bits is None:
        return
    if bits["value"] is None:
        yield f"How many bits a release tells is not known: {_text(bits['why'])}."
        return
    how = "computed over all words" if bits["exact"] else "estimated"
    high = math.ceil(100 * bits["high"] - 1e-9) / 100
    yield f"""\
Measured, not proved: a release tells {high:.2f} of the {bits["entropy"]:.2f} bits of a word, where
  words are written by {bits["prior"]}. Of a text it tells at most so much for each of its words;
  numbers and dates that have laws of their own are not counted. This is {how}, and rounded up."""
    if not bits["exact"]:
        return
    counts = deniable(ChannelCore(mechanism), len(mechanism.space), DENIED_FACTOR)
    counts = np.sort(counts[counts > 0])
    yield f"""\
Plausible deniability, computed over all words: for every word that can be released, at least
  {counts[0]:,} words are within a factor of {DENIED_FACTOR:g} of the likeliest word behind it; for
  half of these outputs at least {counts[len(counts) // 2]:,}. Where there is 1 such word, a reader
  who holds all words for equally likely finds it more than {DENIED_FACTOR:g} times as likely as any
  other."""


def _three_tests(guarantee: Guarantee, mechanism: MechanismCore) -> str:
    link = (
        " Equal words have equal replacements in all texts of a call: texts are easier to link."
        if mechanism.consistent == "call"
        else ""
    )
    limit = (
        "No limit is proved."
        if guarantee.void is not None
        else "Word by word, the reader's odds change by no more than the promise says. For some "
        "words this is much: see the table. Many words on one subject tell the subject."
    )
    return f"""\
Opinion 05/2014 of the Article 29 Working Party on anonymisation techniques (WP 216) asks three
  questions. The answers hold for each text and for the words in it.

- **Singling out. Can a reader still single out one person's record? In general yes.** One text
  goes in and one text comes out. The number of words, the punctuation and whatever stands beside
  the text can single out the record. The mechanism only limits how much its words tell.
- **Linkability. Can a reader still link two records of one person? In general yes.** Length,
  punctuation, subject and style stay in part. The factors of all texts of a person multiply.{link}
- **Inference. Can a reader still infer something about a person? In general yes.** {limit}

The opinion's table on differential privacy is about answers to questions on a database. Here every
  text is released. This page does not claim that table's answers."""


def _not_anonymous(guarantee: Guarantee) -> str:
    exceptions = "".join(f"- {_text(exception)};\n" for exception in guarantee.exceptions)
    return f"""\
**Treat the output as personal data.** In general it is pseudonymised or otherwise protected data.
  It is not anonymous information in the sense of recital 26 of the GDPR unless somebody shows
  otherwise for this release. Recital 26 counts all means that are reasonably likely to be used to
  identify a person. This page does not examine them.

Outside the promise are:

{exceptions}- whatever stands beside the text: columns, file names, times, accounts;
- the subject and the author of a long text;
- the vocabulary, the distances and the cover, if they were made from private texts."""


def _budget(ledger: Ledger | None, account: str | None) -> str:
    if ledger is None:
        return """\
**No ledger was given.** Nobody counted the releases of a person for this page. The promise is for
  one release of one text."""
    entries = ledger.entries(account)
    rows: dict[str, object] = {"budget of an account": down(ledger.budget, MONEY_DIGITS)}
    if account is not None:
        most = ledger.spent(account)
        rows |= {"account": _text(account), "spent": _ceiling(most, MONEY_DIGITS),
                 "left": down(ledger.remaining(account), MONEY_DIGITS)}  # fmt: skip
    else:
        spent: dict[str, list[float]] = {}
        for entry in entries:
            spent.setdefault(entry.account, []).append(entry.amount)
        most = max((math.fsum(amounts) for amounts in spent.values()), default=0.0)
        rows |= {"accounts": f"{len(spent):,}",
                 "most that an account spent": _ceiling(most, MONEY_DIGITS)}  # fmt: skip
    rows["releases charged"] = f"{len(entries):,}"
    if entries:
        days = [time.strftime("%Y-%m-%d", time.gmtime(entries[at].time)) for at in (0, -1)]
        rows["first and last"] = ", ".join(days)
    return f"""\
{_table(rows)}

The unit is ε for each unit of distance, times words. It holds for releases that the ledger charged
  by their words, with any mechanism. Releases that were not charged are not counted. If every word
  changes by at most one unit of distance, a reader's odds change by a factor of at most
  e^{_ceiling(most, MONEY_DIGITS)}: {_factor(most)}."""


_LAW = """\
## Words of the GDPR that fit, and what is not claimed

- The mechanism is a technical measure. It can serve data protection by design (Article 25) and the
  security of processing (Article 32).
- This page can be a part of an impact assessment (Article 35). It does not replace one.
- The output counts as pseudonymised (Article 4(5)) only if the original texts are kept apart and
  protected. The mechanism does not see to that.
- **Not claimed:** that the output is anonymous (recital 26); a legal basis (Article 6) or an
  exception for special categories (Article 9); an end of the rights of the persons (Articles 12 to
  22); permission to transfer (Chapter V); a certification (Article 42)."""


_BLANKS = f"""\
## To be filled in and signed

- controller: {LINE}
- texts, and whose they are: {LINE}
- purpose and recipients: {LINE}
- other releases of these texts: {LINE}
- attack that was run, and its result: {LINE}
- why the result is acceptable: {LINE}
- name, place, date, signature: {LINE}"""


def _common(guarantee: Guarantee) -> list[str]:
    """Return common words that the mechanism protects and that a page can print."""
    mechanism = guarantee._mechanism
    space = mechanism.space
    words = space.words[:COMMON_WORDS]
    offensive = Cover.identity(space, exclude="offensive").excluded
    barred = {*offensive, *mechanism.excluded, *mechanism.skip}
    allowed = [word for word in words if word not in barred]
    function = {*words[:FUNCTION_WORDS]}
    telling = [w for w in allowed if w.isalpha() and len(w) > 3 and w not in function]
    return (telling if len(telling) > 2 else allowed)[:COMPARED_WORDS]


def _factor(bound: float) -> str:
    """Return e^bound, rounded up to three digits."""
    if not math.isfinite(bound):
        return "no bound"
    with localcontext() as context:
        context.prec, context.Emax = 40, 10**15
        factor = Decimal(bound).exp()
        context.prec, context.rounding = 3, ROUND_CEILING
        factor = +factor
    if factor < HOPELESS_FACTOR:
        return f"{factor.normalize():f}"
    digits, power = f"{factor:.2E}".split("E")
    return f"{digits} · 10^{int(power)}"


def _sure(bound: float) -> str:
    """Return the largest posterior probability from even odds, rounded up."""
    percent = 100 / (1 + math.exp(-bound))
    return "practically certain" if percent > 99.9 else _percent(percent)


def _percent(percent: float) -> str:
    """Return a percentage with one decimal digit, rounded up."""
    return f"{min(math.ceil(percent * (1 + 1e-12) * 10) / 10, 100.0):.1f}%"


def _ceiling(amount: float, digits: int = 4) -> str:
    return up(amount, digits) if math.isfinite(amount) else "no finite number"


_MARKS = {ord(sign): f"\\{sign}" for sign in "\\`*_[]<>|~&"}


def _text(text: Any) -> str:
    """Return a text on one line, with Markdown's signs escaped."""
    return " ".join(str(text).split()).translate(_MARKS)
