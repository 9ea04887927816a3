"""A client of a fastdx service (``fastdx-serve``): ``pip install 'fastdx[client]'``.

If a request fails in transit, the client sends it again with the same Idempotency-Key. The service
then answers with the draw that it has already made. So one call never draws a text twice.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Sequence
from typing import Any, overload
from urllib.parse import quote

import httpx

from ._selection import pairs
from .exceptions import FastdxError, ParameterError

__all__ = ["Client", "ServiceError"]

_Texts = list[str | None] | list[str] | tuple[str | None, ...]

# The most seconds that a client waits for a busy service.
_WAIT_SECONDS = 10.0


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
        was no answer, 'other' if it is not the service's."""
        self.left = left
        """The rest of the budget, in ε·words, or None."""


def _again(answer: httpx.Response) -> bool:
    """Return whether a retry may soon get a better answer."""
    try:
        soon = float(answer.headers.get("retry-after", "")) <= _WAIT_SECONDS
    except ValueError:
        soon = False
    return answer.status_code in (502, 503, 504) or (answer.status_code == 429 and soon)


def _read(answer: httpx.Response, *fields: str) -> Any:
    """Return the JSON of an answer, or these fields of it; raise the error that it tells."""
    try:
        body = answer.json()
        if answer.is_success:
            return tuple(body[field] for field in fields) if fields else body
        error = body["error"]
        said = error["code"], error["message"], error.get("left")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        # Of a proxy, perhaps: it may quote the request.
        said = "other", f"the service answered with status {answer.status_code}, not as asked", None
    raise ServiceError(answer.status_code, *said) from None


class Client:
    """A client of a fastdx service; threads may share it. In asyncio, call it by `to_thread`.

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
        self._http = httpx.Client(headers=headers, **options)

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
        new: str | list[str | None]
        (new,) = _read(self._post({"text": text}, policy), "text")
        return new

    def privatize_tokens(self, tokens: Sequence[str], policy: str | None = None) -> list[str]:
        """Privatise a list of words; each string is one word.

        The list keeps its length, unless the policy drops unknown words. Raises as `privatize`.
        """
        return [*_read(self._post({"tokens": list(tokens)}, policy), "tokens")[0]]

    def privatize_spans(
        self, text: str, spans: Iterable[Any], policy: str | None = None, *, unit: str = "codepoint"
    ) -> tuple[str, list[tuple[int, int]]]:
        """Privatise spans of a text; return the new text and the places of their union in it.

        Spans and `unit` are those of `Mechanism.privatize_spans`: whole words are replaced, and the
        rest of the text is released unchanged. Raises as `privatize`.
        """
        given = {"text": text, "spans": pairs(spans), "unit": unit}
        new, places = _read(self._post(given, policy), "text", "spans")
        return new, [(start, end) for start, end in places]

    def guarantee(self, policy: str) -> dict[str, Any]:
        """Return a policy's description; ``["guarantee"]`` has the form of `Guarantee.to_dict`.

        Raises as `privatize`.
        """
        found: dict[str, Any] = _read(self._send("GET", f"/v1/guarantee/{quote(policy, safe='')}"))
        return found

    def _post(self, given: dict[str, Any], policy: str | None) -> httpx.Response:
        try:
            body = {**given, "policy": policy or self.policy}
            content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:
            # The UnicodeEncodeError holds the text.
            message = "text must be Unicode: it holds a lone surrogate"
            raise ParameterError(message) from None
        key = {"Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
        return self._send("POST", "/v1/privatize", content=content, headers=key)

    def _send(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Send a request until an answer will do, or it was sent often enough."""
        for tried in range(self.retries + 1):
            last = tried == self.retries
            try:
                answer = self._http.request(method, f"{self.url}{path}", **request)
                if last or not _again(answer):
                    return answer
            except (httpx.RequestError, httpx.InvalidURL) as e:
                if last:
                    # Only the class of the transport's error: its message may quote the request.
                    message = f"the service could not be reached ({type(e).__name__})"
                    raise ServiceError(None, "unreachable", message, None) from None
            time.sleep(min(0.1 * 2**tried, 5.0))
        raise ParameterError(f"retries must be at least 0, got {self.retries}")

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
