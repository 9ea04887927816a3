"""The clients of a service: what they send, what comes of refusals and broken connections."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

httpx = pytest.importorskip("httpx")

from fastdx import FastdxError  # noqa: E402
from fastdx.client import AsyncClient, Client, ServiceError  # noqa: E402


class Service:
    """Answers in turn; an exception is raised instead."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.seen: list[Any] = []

    def __call__(self, request: Any) -> Any:
        self.seen.append((request.headers, json.loads(request.content)))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def refused(status: int, code: str, retry: str | None = None, **more: Any) -> Any:
    headers = {} if retry is None else {"retry-after": retry}
    error = {"code": code, "message": "why not", **more}
    return httpx.Response(status, json={"error": error}, headers=headers)


def good() -> Any:
    return httpx.Response(200, json={"text": "hot cup", "spans": [[0, 3]]})


def sync_call(service: Service, *args: Any, **options: Any) -> Any:
    with Client("http://x/", transport=httpx.MockTransport(service), **options) as client:
        return client.privatize(*args)


def async_call(service: Service, *args: Any, **options: Any) -> Any:
    async def call() -> Any:
        transport = httpx.MockTransport(service)
        async with AsyncClient("http://x/", transport=transport, **options) as client:
            return await client.privatize(*args)

    return asyncio.run(call())


@pytest.fixture(params=[sync_call, async_call])
def call(request: Any) -> Callable[..., Any]:
    chosen: Callable[..., Any] = request.param
    return chosen


def test_what_is_sent(call: Callable[..., Any]) -> None:
    service = Service(good(), httpx.Response(200, json={"text": ["hot cup", None]}))
    assert call(service, "warm tea", key="secret", policy="reviews") == "hot cup"
    assert call(service, ("warm tea", None), "other") == ["hot cup", None]
    (first, body), (second, texts) = service.seen
    assert body == {"text": "warm tea", "policy": "reviews"}
    assert texts == {"text": ["warm tea", None], "policy": "other"}
    assert first["authorization"] == "Bearer secret" and "authorization" not in second
    assert first["idempotency-key"] != second["idempotency-key"]


FAILURES = [
    httpx.ConnectError("tea"),
    httpx.ReadError("tea"),
    httpx.DecodingError("tea"),
    (503, "starting", "1"),
    (429, "busy", "1"),
    (429, "busy", "Wed, 21 Oct 2015 07:28:00 GMT"),
    (429, "busy", "Wed, 21 Oct 2015 07:28:00 -0000"),
]


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_request_is_sent_again_under_its_key(
    call: Callable[..., Any], failure: Any
) -> None:
    service = Service(refused(*failure) if isinstance(failure, tuple) else failure, good())
    assert call(service, "warm tea") == "hot cup"
    keys = {headers["idempotency-key"] for headers, _ in service.seen}
    assert len(service.seen) == 2 and len(keys) == 1


def test_refusals_are_told_at_once(call: Callable[..., Any]) -> None:
    service = Service(refused(429, "budget", "86400", left=2.0))
    with pytest.raises(ServiceError, match="why not") as caught:
        call(service, "warm tea")
    error = caught.value
    assert (error.status, error.code, error.left, len(service.seen)) == (429, "budget", 2.0, 1)
    assert isinstance(error, FastdxError)


@pytest.mark.parametrize("when", ["Wed, 21 Oct 2099 07:28:00 GMT", "soon", "", "nan", "1e999"])
def test_a_service_that_is_busy_for_long(call: Callable[..., Any], when: str) -> None:
    service = Service(refused(429, "busy", when))
    with pytest.raises(ServiceError, match="why not"):
        call(service, "warm tea")
    assert len(service.seen) == 1


DEEP = b"[" * 100_000
FOREIGN = [
    [], ["warm tea"], "warm tea", 7, None, {}, {"text": None}, {"text": ["warm tea"]},
    {"error": {"code": "busy", "message": "warm tea"}}, DEEP, b"\xff", b"",
]  # fmt: skip


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("body", FOREIGN, ids=range(len(FOREIGN)))
def test_answers_that_are_not_the_services(
    call: Callable[..., Any], status: int, body: Any
) -> None:
    """Whatever a proxy answers, the error is the package's and does not quote it."""
    if status == 500 and isinstance(body, dict) and "error" in body:
        body = {"error": ["busy"]}
    content = {"content": body} if isinstance(body, bytes) else {"json": body}
    with pytest.raises(ServiceError, match=f"status {status}") as caught:
        call(Service(httpx.Response(status, **content)), "warm tea")
    assert caught.value.code == "other" and "tea" not in str(caught.value)


@pytest.mark.parametrize("texts", [["hot cup"], ["hot cup", "b"], ["hot cup", 3], "hot cup"])
def test_texts_that_are_not_as_many(call: Callable[..., Any], texts: Any) -> None:
    with pytest.raises(ServiceError, match="not as asked"):
        call(Service(httpx.Response(200, json={"text": texts})), ["warm tea", None])


def test_other_calls_with_foreign_answers() -> None:
    answers = [[], {"tokens": ["hot", None]}, {"tokens": "hot"}, {"text": "hot cup"}]
    answers += [
        {"text": "hot cup", "spans": spans}
        for spans in (7, [7], [[0]], [["a", "b"]], [], [[0, 1], [2, 3]])
    ]
    for answer in answers:
        service = httpx.MockTransport(lambda _, body=answer: httpx.Response(200, json=body))
        with Client("http://x", transport=service) as client:
            with pytest.raises(ServiceError, match="not as asked"):
                client.privatize_tokens(["warm", "tea"])
            with pytest.raises(ServiceError, match="not as asked"):
                client.privatize_spans("my Anna", [(3, 7)])
    found = httpx.MockTransport(lambda _: httpx.Response(200, json=[]))
    with Client("http://x", transport=found) as client, pytest.raises(ServiceError):
        client.guarantee("a")


def test_a_lone_surrogate_is_refused_without_the_text(call: Callable[..., Any]) -> None:
    with pytest.raises(FastdxError, match="surrogate") as caught:
        call(Service(), "warm tea \ud800")
    error: BaseException | None = caught.value
    while error is not None:
        assert "tea" not in str(error) and "tea" not in str(getattr(error, "object", ""))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_what_is_no_address() -> None:
    with Client("http://x:port") as client, pytest.raises(ServiceError, match="reached"):
        client.privatize("warm tea")


def test_errors_do_not_show_the_text(call: Callable[..., Any]) -> None:
    answers = [httpx.ConnectError("warm tea")] * 2
    with pytest.raises(ServiceError, match="ConnectError") as caught:
        call(Service(*answers), "warm tea", retries=1)
    assert "tea" not in str(caught.value) and caught.value.code == "unreachable"
    with pytest.raises(ServiceError, match="status 500") as caught:
        call(Service(httpx.Response(500, text="warm tea")), "warm tea")
    assert "tea" not in str(caught.value)


def test_words_that_were_found() -> None:
    service = Service(*(httpx.Response(200, json={"tokens": ["hot", "cup"]}) for _ in range(2)))
    with Client("http://x", transport=httpx.MockTransport(service)) as client:
        assert client.privatize_tokens(("warm", "tea"), "a") == ["hot", "cup"]

    async def call() -> list[str]:
        async with AsyncClient("http://x", transport=httpx.MockTransport(service)) as client:
            return await client.privatize_tokens(["warm", "tea"])

    assert asyncio.run(call()) == ["hot", "cup"]
    assert [body for _, body in service.seen] == [
        {"tokens": ["warm", "tea"], "policy": policy} for policy in ("a", None)
    ]


def test_spans_and_guarantees() -> None:
    service = Service(good(), good())
    with Client("http://x", transport=httpx.MockTransport(service)) as client:
        result = {"start": 3, "end": 6, "score": 1.0}
        assert client.privatize_spans("my Anna", [(3, 7), result]) == ("hot cup", [(0, 3)])
        client.privatize_spans("my Anna", [(3, 7)], unit="utf16")
    first, second = (body for _, body in service.seen)
    assert (first["spans"], first["unit"]) == ([[3, 7], [3, 6]], "codepoint")
    assert (second["spans"], second["unit"]) == ([[3, 7]], "utf16")
    found = httpx.MockTransport(lambda request: httpx.Response(200, json={"url": str(request.url)}))
    with Client("http://x", transport=found) as client:
        assert client.guarantee("a") == {"url": "http://x/v1/guarantee/a"}
        assert client.guarantee("a/b?c") == {"url": "http://x/v1/guarantee/a%2Fb%3Fc"}
