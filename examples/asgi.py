"""A minimal ASGI service around Tem: `uvicorn --app-dir examples asgi:app --workers 2`.

It answers like fastdx-serve, but has no limits, keys, ledger or metrics.
"""

from __future__ import annotations

from json import JSONDecodeError

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from fastdx import Tem

tem = Tem.recommended()


async def privatize(request: Request) -> JSONResponse:
    """Answer {"text": …} with the privatised text; an error never shows the request's content."""
    try:
        return JSONResponse({"text": tem.privatize((await request.json())["text"])})
    except (JSONDecodeError, KeyError, TypeError, UnicodeError):
        return JSONResponse({"error": "the body must be {'text': …}"}, status_code=400)


app = Starlette(routes=[Route("/v1/privatize", privatize, methods=["POST"])])
