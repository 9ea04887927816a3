"""Clients of a fastdx service (``fastdx-serve``), sync and async: ``pip install 'fastdx[client]'``.

If a request fails in transit, the client sends it again with the same Idempotency-Key. The service
then answers with the draw that it has already made. So one call never draws a text twice.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, overload
from urllib.parse import quote

import httpx

from ._selection import pairs
from .exceptions import FastdxError, ParameterError

__all__ = ["AsyncClient", "Client", "ServiceError"]

_Texts = list[str | None] | list[str] | tuple[str | None, ...]


class ServiceError(FastdxError):
    """The service refused a request, or could not be reached.

    The message comes from the service and never holds the text that was sent.
    """

    def __init__(self, status: int | None, code: str, message: str, left: float | None) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status; None if there was no answer."""
        self.code = code
        """The service's name of the error: 'budget', 'busy', 'too_large', …; 'unreachable' if there
        was no answer."""
        self.left = left
        """The rest of the budget, in ε·words, or None."""


class _Call:
    """One request, with its retries and the last answer to it."""

    def __init__(self, given: dict[str, Any], policy: str | None, retries: int) -> None:
        try:
            self.content = json.dumps(
                {**given, "policy": policy}, ensure_ascii=False, separators=(",", ":")
            ).encode()
        except UnicodeEncodeError:
            # The UnicodeEncodeError holds the text.
            message = "text must be Unicode: it holds a lone surrogate"
            raise ParameterError(message) from None
        self.headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": str(uuid.uuid4()),
        }
        self.retries = retries
        self.answer: httpx.Response | Exception | None = None

    def waits(self) -> Iterator[float]:
        """Yield the seconds to wait before each try, until an answer will do."""
        yield 0.0
        for i in range(self.retries):
            if isinstance(self.answer, httpx.Response) and not self._again(self.answer):
                return
            yield min(0.1 * 2**i, 5.0)

    @staticmethod
    def _again(answer: httpx.Response) -> bool:
        """Return whether a retry may soon get a better answer."""
        if answer.status_code in (502, 503, 504):
            return True
        return answer.status_code == 429 and _retry_after(answer) <= _WAIT_SECONDS

    def answered(self) -> httpx.Response:
        """Return the last answer; raise if the service was not reached."""
        if not isinstance(self.answer, httpx.Response):
            raise _unreachable(self.answer) from None
        return self.answer


# The most seconds that a client waits for a busy service.
_WAIT_SECONDS = 10.0


def _retry_after(answer: httpx.Response) -> float:
    """Return the seconds of the header Retry-After; infinity without one."""
    given = answer.headers.get("retry-after", "")
    try:
        return float(given)
    except ValueError:
        pass
    try:
        then = parsedate_to_datetime(given)
    except ValueError:
        return float("inf")
    # A date without a zone is in UTC.
    then = then if then.tzinfo else then.replace(tzinfo=timezone.utc)
    return (then - datetime.now(timezone.utc)).total_seconds()


def _read(answer: httpx.Response) -> dict[str, Any]:
    """Return the JSON object of the answer, or raise ServiceError."""
    body = _json(answer)
    if answer.is_success and isinstance(body, dict):
        return body
    error = body.get("error") if isinstance(body, dict) else None
    if answer.is_success or not isinstance(error, dict):
        raise _other(answer)
    code, message, left = error.get("code"), error.get("message"), error.get("left")
    if not isinstance(code, str) or not isinstance(message, str):
        raise _other(answer)
    left = float(left) if isinstance(left, int | float) else None
    raise ServiceError(answer.status_code, code, message, left)


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except (ValueError, RecursionError):
        return None


def _other(answer: httpx.Response) -> ServiceError:
    """Return the error for an answer that does not come from a fastdx service."""
    message = f"the service answered with status {answer.status_code}"
    if answer.is_success:
        message += ", and not as asked"
    return ServiceError(answer.status_code, "other", message, None)


def _released(answer: httpx.Response, field: str, given: Any) -> Any:
    """Return the released text, texts or tokens; raise if they do not have the form of `given`."""
    found: Any = _read(answer).get(field)
    if isinstance(given, str):
        fits = isinstance(found, str)
    elif not isinstance(found, list) or not all(isinstance(one, str | None) for one in found):
        fits = False
    elif field == "tokens":
        fits = None not in found
    else:
        # None must stay exactly where it was.
        fits = [one is None for one in found] == [one is None for one in given]
    if not fits:
        raise _other(answer)
    return found


def _released_spans(
    answer: httpx.Response, given: dict[str, Any]
) -> tuple[str, list[tuple[int, int]]]:
    """Return a released text and its spans, or raise ServiceError."""
    new, spans = _released(answer, "text", given["text"]), _read(answer).get("spans")
    try:
        places = [(int(start), int(end)) for start, end in spans or ()]
    except (TypeError, ValueError):
        raise _other(answer) from None
    # Spans that touch one word, or each other, are one span of the release.
    most = len(given["spans"])
    if not min(most, 1) <= len(places) <= most:
        raise _other(answer)
    return new, places


# Errors in transit, and addresses that are not valid.
_FAILURES = (httpx.RequestError, httpx.InvalidURL)


def _unreachable(error: Exception | None) -> ServiceError:
    # Only the class of the transport's error: its message may quote the request.
    message = f"the service could not be reached ({type(error).__name__})"
    return ServiceError(None, "unreachable", message, None)


def _text(text: str | _Texts) -> dict[str, Any]:
    return {"text": text if isinstance(text, str) else list(text)}


def _spans(text: str, spans: Iterable[Any], unit: str) -> dict[str, Any]:
    return {"text": text, "spans": pairs(spans), "unit": unit}


class _Base:
    _kind: Any
    """The class of httpx that sends requests."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        policy: str | None = None,
        retries: int = 3,
        **options: Any,
    ) -> None:
        self.url, self.policy, self.retries = url.rstrip("/"), policy, retries
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._http = self._kind(headers=headers, **options)

    def _call(self, given: dict[str, Any], policy: str | None) -> _Call:
        return _Call(given, policy or self.policy, self.retries)

    def _guarantee_url(self, policy: str) -> str:
        return f"{self.url}/v1/guarantee/{quote(policy, safe='')}"


class Client(_Base):
    """A client of a fastdx service; threads may share it.

    Parameters
    ----------
    url : str
        The address of the service: ``"https://private.example"``.
    key : str, optional
        The API key.
    policy : str, optional
        The policy for calls that name none; by default the default policy of the service.
    retries : int, optional
        How often a request is sent again if it fails in transit or the service is busy.
    **options : Any
        Options of `httpx.Client`: ``timeout``, ``verify``, ``transport`` (for a Unix socket), …

    Examples
    --------
    >>> import httpx
    >>> def service(request):                      # in place of one that runs
    ...     return httpx.Response(200, json={"text": "hot cup"})
    >>> with Client("http://localhost:8080", transport=httpx.MockTransport(service)) as client:
    ...     client.privatize("warm tea")
    'hot cup'
    """

    _kind = httpx.Client
    _http: httpx.Client

    @overload
    def privatize(self, text: str, policy: str | None = None) -> str: ...
    @overload
    def privatize(self, text: _Texts, policy: str | None = None) -> list[str | None]: ...
    def privatize(self, text: str | _Texts, policy: str | None = None) -> str | list[str | None]:
        """Privatise a text, or each text of a list; None stays None.

        Raises
        ------
        ServiceError
            The service refused the request, or could not be reached.
        """
        given = _text(text)
        result: str | list[str | None]
        result = _released(self._send(given, policy), "text", given["text"])
        return result

    def privatize_tokens(self, tokens: Sequence[str], policy: str | None = None) -> list[str]:
        """Privatise a list of words; each string is one word.

        The list keeps its length, unless the policy drops unknown words. Raises as `privatize`.
        """
        given = list(tokens)
        result: list[str] = _released(self._send({"tokens": given}, policy), "tokens", given)
        return result

    def privatize_spans(
        self,
        text: str,
        spans: Iterable[Any],
        policy: str | None = None,
        *,
        unit: str = "codepoint",
    ) -> tuple[str, list[tuple[int, int]]]:
        """Privatise spans of a text; return the new text and the places of their union in it.

        Spans and `unit` are those of `Mechanism.privatize_spans`: whole words are replaced, and the
        rest of the text is released unchanged. Raises as `privatize`.
        """
        given = _spans(text, spans, unit)
        return _released_spans(self._send(given, policy), given)

    def guarantee(self, policy: str) -> dict[str, Any]:
        """Return a policy's description; ``["guarantee"]`` has the form of `Guarantee.to_dict`.

        Raises as `privatize`.
        """
        try:
            found = self._http.get(self._guarantee_url(policy))
        except _FAILURES as e:
            raise _unreachable(e) from None
        return _read(found)

    def _send(self, given: dict[str, Any], policy: str | None) -> httpx.Response:
        call, url = self._call(given, policy), f"{self.url}/v1/privatize"
        for wait in call.waits():
            time.sleep(wait)
            try:
                call.answer = self._http.post(url, content=call.content, headers=call.headers)
            except _FAILURES as e:
                call.answer = e
        return call.answered()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncClient(_Base):
    """`Client` for asyncio, with the same parameters.

    Examples
    --------
    >>> import asyncio, httpx
    >>> def service(request):
    ...     return httpx.Response(200, json={"text": ["hot cup", None]})
    >>> async def main():
    ...     transport = httpx.MockTransport(service)
    ...     async with AsyncClient("http://localhost:8080", transport=transport) as client:
    ...         return await client.privatize(["warm tea", None])
    >>> asyncio.run(main())
    ['hot cup', None]
    """

    _kind = httpx.AsyncClient
    _http: httpx.AsyncClient

    @overload
    async def privatize(self, text: str, policy: str | None = None) -> str: ...
    @overload
    async def privatize(self, text: _Texts, policy: str | None = None) -> list[str | None]: ...
    async def privatize(
        self, text: str | _Texts, policy: str | None = None
    ) -> str | list[str | None]:
        """As `Client.privatize`."""
        given = _text(text)
        result: str | list[str | None]
        result = _released(await self._send(given, policy), "text", given["text"])
        return result

    async def privatize_tokens(self, tokens: Sequence[str], policy: str | None = None) -> list[str]:
        """As `Client.privatize_tokens`."""
        given = list(tokens)
        result: list[str]
        result = _released(await self._send({"tokens": given}, policy), "tokens", given)
        return result

    async def privatize_spans(
        self,
        text: str,
        spans: Iterable[Any],
        policy: str | None = None,
        *,
        unit: str = "codepoint",
    ) -> tuple[str, list[tuple[int, int]]]:
        """As `Client.privatize_spans`."""
        given = _spans(text, spans, unit)
        return _released_spans(await self._send(given, policy), given)

    async def guarantee(self, policy: str) -> dict[str, Any]:
        """As `Client.guarantee`."""
        try:
            found = await self._http.get(self._guarantee_url(policy))
        except _FAILURES as e:
            raise _unreachable(e) from None
        return _read(found)

    async def _send(self, given: dict[str, Any], policy: str | None) -> httpx.Response:
        call, url = self._call(given, policy), f"{self.url}/v1/privatize"
        for wait in call.waits():
            await asyncio.sleep(wait)
            try:
                call.answer = await self._http.post(url, content=call.content, headers=call.headers)
            except _FAILURES as e:
                call.answer = e
        return call.answered()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()
