"""The client of a service: what it sends, what comes of refusals and broken connections."""

import json
from typing import Any

import pytest

httpx = pytest.importorskip("httpx")

from fastdx import FastdxError  # noqa: E402
from fastdx.client import Client, ServiceError  # noqa: E402


class Service:
    """Answers in turn; an exception is raised instead."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.seen: list[Any] = []

    def __call__(self, request: Any) -> Any:
        self.seen.append((request.headers, json.loads(request.content or b"null"), request.url))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)

    def client(self, **options: Any) -> Client:
        return Client("http://x/", transport=httpx.MockTransport(self), **options)


def refused(status: int, code: str, retry: str, **more: Any) -> Any:
    error = {"code": code, "message": "why not", **more}
    return httpx.Response(status, json={"error": error}, headers={"retry-after": retry})


GOOD = {"text": "hot cup", "spans": [[0, 3]]}


def test_what_is_sent() -> None:
    service = Service(GOOD, {"text": ["hot cup", None]}, {"tokens": ["hot"]}, GOOD, GOOD, {"a": 1})
    with service.client(key="secret", policy="reviews") as client:
        assert client.privatize("warm tea") == "hot cup"
        assert client.privatize(("warm tea", None), "other") == ["hot cup", None]
        assert client.privatize_tokens(("warm",)) == ["hot"]
        spans = [(3, 7), {"start": 3, "end": 6, "score": 1.0}]
        assert client.privatize_spans("my Anna", spans) == ("hot cup", [(0, 3)])
        client.privatize_spans("my Anna", [(3, 7)], unit="utf16")
        assert client.guarantee("a/b?c") == {"a": 1}
    own, anna = {"policy": "reviews"}, {"text": "my Anna", "policy": "reviews"}
    assert [body for _, body, _ in service.seen] == [
        {"text": "warm tea"} | own, {"text": ["warm tea", None], "policy": "other"},
        {"tokens": ["warm"]} | own, anna | {"spans": [[3, 7], [3, 6]], "unit": "codepoint"},
        anna | {"spans": [[3, 7]], "unit": "utf16"}, None,
    ]  # fmt: skip
    assert all(headers["authorization"] == "Bearer secret" for headers, *_ in service.seen)
    assert len({headers["idempotency-key"] for headers, *_ in service.seen[:5]}) == 5
    assert str(service.seen[5][2]) == "http://x/v1/guarantee/a%2Fb%3Fc"


@pytest.mark.parametrize("failure", [
    httpx.ConnectError("tea"), httpx.ReadError("tea"), httpx.DecodingError("tea"),
    (503, "starting", "1"), (429, "busy", "1"),
])  # fmt: skip
def test_a_failed_request_is_sent_again_under_its_key(failure: Any) -> None:
    service = Service(refused(*failure) if isinstance(failure, tuple) else failure, GOOD)
    assert service.client().privatize("warm tea") == "hot cup"
    keys = {headers["idempotency-key"] for headers, *_ in service.seen}
    assert len(service.seen) == 2 and len(keys) == 1


@pytest.mark.parametrize("retry", ["86400", "soon", "", "nan", "1e999"])
def test_refusals_are_told_at_once(retry: str) -> None:
    service = Service(refused(429, "budget", retry, left=2.0))
    with pytest.raises(ServiceError, match="why not") as caught:
        service.client().privatize("warm tea")
    error = caught.value
    assert (error.status, error.code, error.left, len(service.seen)) == (429, "budget", 2.0, 1)
    assert isinstance(error, FastdxError)


FOREIGN = [
    b"[]", b'["warm tea"]', b'"warm tea"', b"7", b"null", b"{}", b'{"error": ["warm tea"]}',
    b"[" * 100_000, b"\xff", b"",
]  # fmt: skip


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("body", FOREIGN, ids=range(len(FOREIGN)))
def test_answers_that_are_not_the_services(status: int, body: bytes) -> None:
    """Whatever a proxy answers, the error is the package's and does not quote it."""
    with pytest.raises(ServiceError, match=f"status {status}, not as asked") as caught:
        Service(httpx.Response(status, content=body)).client().privatize("warm tea")
    assert caught.value.code == "other" and "tea" not in str(caught.value)


def test_errors_do_not_show_the_text() -> None:
    service = Service(*[httpx.ConnectError("warm tea")] * 2)
    with pytest.raises(ServiceError, match="ConnectError") as caught:
        service.client(retries=1).privatize("warm tea")
    assert "tea" not in str(caught.value) and caught.value.code == "unreachable"
    with Client("http://x:port") as client, pytest.raises(ServiceError, match="reached"):
        client.privatize("warm tea")
    with pytest.raises(FastdxError, match="surrogate") as surrogate:
        Service().client().privatize("warm tea \ud800")
    error = surrogate.value
    assert error.__suppress_context__ and error.__cause__ is None and "tea" not in str(error)
