"""Clients of a fastdx service (``fastdx-serve``), sync and async: ``pip install 'fastdx[client]'``.

A request that failed on its way is sent again under the same Idempotency-Key, so that the service
answers with the draw it has already made: no text is drawn twice for one call.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, overload

import httpx

from .exceptions import FastdxError

__all__ = ["AsyncClient", "Client", "ServiceError"]

_Texts = list[str | None] | list[str] | tuple[str | None, ...]


class ServiceError(FastdxError):
    """The service refused, or could not be reached.

    Its message is the service's own, which never holds the text that was sent.
    """

    def __init__(self, status: int | None, code: str, message: str, left: float | None) -> None:
        """Keep what the service said."""
        super().__init__(message)
        self.status = status
        """The HTTP status, or None where no answer came."""
        self.code = code
        """The service's word for it: 'budget', 'busy', 'too_large', …; 'unreachable' for none."""
        self.left = left
        """What is left of a budget, in ε·words, or None."""


class _Call:
    """One request, and what becomes of its answers."""

    def __init__(self, given: dict[str, Any], policy: str | None, retries: int) -> None:
        self.json = {**given, "policy": policy}
        self.headers = {"Idempotency-Key": str(uuid.uuid4())}
        self.retries = retries

    def waits(self) -> Iterator[float]:
        """Seconds before each try."""
        yield 0.0
        for i in range(self.retries):
            yield min(0.1 * 2**i, 5.0)

    @staticmethod
    def read(answer: httpx.Response) -> Any:
        """Return what was released, or raise."""
        try:
            body = answer.json()
            if answer.is_success:
                return body
            error = body["error"]
            raise ServiceError(
                answer.status_code, error["code"], error["message"], error.get("left")
            )
        except (ValueError, KeyError, TypeError):
            message = f"the service answered with status {answer.status_code}"
            raise ServiceError(answer.status_code, "other", message, None) from None

    @staticmethod
    def again(answer: httpx.Response) -> bool:
        """Whether the same request may have a better answer soon."""
        if answer.status_code in (502, 503, 504):
            return True
        return answer.status_code == 429 and float(answer.headers.get("retry-after", 60)) <= 10


def _unreachable(error: httpx.TransportError | None) -> ServiceError:
    # Of the transport's error the class alone: its message may quote what was sent.
    message = f"the service could not be reached ({type(error).__name__})"
    return ServiceError(None, "unreachable", message, None)


def _text(text: str | _Texts) -> dict[str, Any]:
    return {"text": text if isinstance(text, str) else list(text)}


def _spans(text: str, spans: Sequence[tuple[int, int]]) -> dict[str, Any]:
    return {"text": text, "spans": [tuple(span) for span in spans]}


class _Base:
    def __init__(self, url: str, key: str | None, policy: str | None, retries: int) -> None:
        self.url, self.policy, self.retries = url.rstrip("/"), policy, retries
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}


class Client(_Base):
    """A client of a fastdx service; may be shared between threads.

    Parameters
    ----------
    url : str
        Where the service listens: ``"https://private.example"``.
    key : str, optional
        The API key.
    policy : str, optional
        The policy of calls that name none; by default the service's default one.
    retries : int, optional
        How often a request is sent again that failed on its way, or met a busy service.
    **options : Any
        Of `httpx.Client`: ``timeout``, ``verify``, ``transport`` (for a Unix socket), …

    Examples
    --------
    >>> import httpx
    >>> def service(request):                      # in place of one that runs
    ...     return httpx.Response(200, json={"text": "hot cup"})
    >>> with Client("http://localhost:8080", transport=httpx.MockTransport(service)) as client:
    ...     client.privatize("warm tea")
    'hot cup'
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        policy: str | None = None,
        retries: int = 3,
        **options: Any,
    ) -> None:
        """Make a client; no connection yet."""
        super().__init__(url, key, policy, retries)
        self._http = httpx.Client(headers=self._headers, **options)

    @overload
    def privatize(self, text: str, policy: str | None = None) -> str: ...
    @overload
    def privatize(self, text: _Texts, policy: str | None = None) -> list[str | None]: ...
    def privatize(self, text: str | _Texts, policy: str | None = None) -> str | list[str | None]:
        """Return a text, or each text of a list, privatised; None stays None.

        Raises
        ------
        ServiceError
            The service refused, or could not be reached.
        """
        result: str | list[str | None] = self._send(_text(text), policy)["text"]
        return result

    def privatize_tokens(self, tokens: Sequence[str], policy: str | None = None) -> list[str]:
        """Return words that were found elsewhere, privatised: each string is one word.

        They are as many, unless the policy drops unknown ones. Raises as `privatize`.
        """
        result: list[str] = self._send({"tokens": list(tokens)}, policy)["tokens"]
        return result

    def privatize_spans(
        self, text: str, spans: Sequence[tuple[int, int]], policy: str | None = None
    ) -> tuple[str, list[tuple[int, int]]]:
        """Return a text of which parts are privatised, and where these are in it, in characters.

        The rest of the text is released as it is. Raises as `privatize`.
        """
        answer = self._send(_spans(text, spans), policy)
        return answer["text"], [tuple(span) for span in answer["spans"]]

    def guarantee(self, policy: str) -> dict[str, Any]:
        """Return what is proved of a policy. Raises as `privatize`."""
        try:
            found = self._http.get(f"{self.url}/v1/guarantee/{policy}")
        except httpx.TransportError as e:
            raise _unreachable(e) from None
        answer: dict[str, Any] = _Call.read(found)
        return answer

    def _send(self, given: dict[str, Any], policy: str | None) -> Any:
        call = _Call(given, policy or self.policy, self.retries)
        answer, error = None, None
        for wait in call.waits():
            time.sleep(wait)
            try:
                url = f"{self.url}/v1/privatize"
                answer = self._http.post(url, json=call.json, headers=call.headers)
            except httpx.TransportError as e:
                answer, error = None, e
                continue
            if not call.again(answer):
                break
        if answer is None:
            raise _unreachable(error) from None
        return call.read(answer)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        """Return the client."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connections."""
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

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        policy: str | None = None,
        retries: int = 3,
        **options: Any,
    ) -> None:
        """Make a client; no connection yet."""
        super().__init__(url, key, policy, retries)
        self._http = httpx.AsyncClient(headers=self._headers, **options)

    @overload
    async def privatize(self, text: str, policy: str | None = None) -> str: ...
    @overload
    async def privatize(self, text: _Texts, policy: str | None = None) -> list[str | None]: ...
    async def privatize(
        self, text: str | _Texts, policy: str | None = None
    ) -> str | list[str | None]:
        """As `Client.privatize`."""
        result: str | list[str | None] = (await self._send(_text(text), policy))["text"]
        return result

    async def privatize_tokens(self, tokens: Sequence[str], policy: str | None = None) -> list[str]:
        """As `Client.privatize_tokens`."""
        result: list[str] = (await self._send({"tokens": list(tokens)}, policy))["tokens"]
        return result

    async def privatize_spans(
        self, text: str, spans: Sequence[tuple[int, int]], policy: str | None = None
    ) -> tuple[str, list[tuple[int, int]]]:
        """As `Client.privatize_spans`."""
        answer = await self._send(_spans(text, spans), policy)
        return answer["text"], [tuple(span) for span in answer["spans"]]

    async def guarantee(self, policy: str) -> dict[str, Any]:
        """As `Client.guarantee`."""
        try:
            found = await self._http.get(f"{self.url}/v1/guarantee/{policy}")
        except httpx.TransportError as e:
            raise _unreachable(e) from None
        answer: dict[str, Any] = _Call.read(found)
        return answer

    async def _send(self, given: dict[str, Any], policy: str | None) -> Any:
        call = _Call(given, policy or self.policy, self.retries)
        answer, error = None, None
        for wait in call.waits():
            await asyncio.sleep(wait)
            try:
                url = f"{self.url}/v1/privatize"
                answer = await self._http.post(url, json=call.json, headers=call.headers)
            except httpx.TransportError as e:
                answer, error = None, e
                continue
            if not call.again(answer):
                break
        if answer is None:
            raise _unreachable(error) from None
        return call.read(answer)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        """Return the client."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connections."""
        await self.aclose()
