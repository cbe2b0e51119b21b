"""A small server for one machine: it answers GET on 127.0.0.1 and takes no data.

Every answer follows from the address alone. Foreign hosts, other methods and addresses that make no
sense get one sentence.
"""

from __future__ import annotations

import dataclasses
import html
import json
import socketserver
import threading
from collections.abc import Mapping
from fractions import Fraction
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from expmech.core.errors import ExpmechError, ParameterError, validate_integer
from expmech.explore.page import fill_page, read_static, standalone
from expmech.explore.panels import NARROWEST, PANELS, WIDEST, Panel
from expmech.explore.state import OWNER, State, read_state
from expmech.explore.view import epsilon_for, view_of
from expmech.ledger import exact_amount

HOST = "127.0.0.1"
_LONGEST = 2000  # characters of an address
_MOST = 40  # settings in an address
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}


class _Refused(Exception):  # noqa: N818
    """An answer other than what was asked for."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # one connection serves all pictures
    server_version, sys_version = "expmech", ""
    timeout = 60.0  # seconds that a connection may be silent; each has a thread of its own
    server: Server

    def do_GET(self) -> None:
        """Answer by the address."""
        try:
            self._check_host()
            kind, body, extra = self.server.answer(self.path)
        except _Refused as refused:
            self._refuse(refused.status, refused.sentence)
        except ExpmechError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        except Exception:  # a mistake of ours: no traceback leaves
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, "This picture could not be drawn.")
        else:
            self._send(HTTPStatus.OK, kind, body, extra)

    def _not_here(self) -> None:
        self.close_connection = True  # a body may follow, which nobody reads
        sentence = "This page only answers GET; it takes no data."
        self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, sentence)

    do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_HEAD = _not_here  # noqa: N815

    def _check_host(self) -> None:
        """Refuse names of other machines, by which a foreign page could reach this one."""
        port = self.server.server_address[1]
        if self.headers.get("Host") not in (f"{HOST}:{port}", f"localhost:{port}"):
            raise _Refused(HTTPStatus.FORBIDDEN, f"This page is at http://{HOST}:{port}/ only.")

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        if self.path.startswith("/panel/"):
            self._send(status, "application/json", json.dumps({"error": sentence}), {})
            return
        body = (
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>expmech explore</title>'
            '<link rel="stylesheet" href="/static/style.css"><main class="refusal">'
            f'<p>{html.escape(sentence)}</p><p><a href="/">Start again</a></p></main></html>'
        )
        self._send(status, "text/html", body, {})

    def _send(self, status: HTTPStatus, kind: str, body: str, extra: Mapping[str, str]) -> None:
        sent = body.encode()
        self.send_response(status)
        headers = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(sent))}
        for name, value in (headers | _HEADERS | dict(extra)).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(sent)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep no log."""


class Server(ThreadingHTTPServer):
    """Pages and pictures of made-up data, for this machine alone."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__((HOST, port), _Handler)
        self._alone = threading.Lock()

    def server_bind(self) -> None:
        """Bind without asking anybody for the machine's name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet about browsers that went away in the middle of an answer."""

    @property
    def address(self) -> str:
        """What to open."""
        return f"http://{HOST}:{self.server_address[1]}/"

    def answer(self, path: str) -> tuple[str, str, dict[str, str]]:
        """Return the type, the text and further headers of what is at an address."""
        if len(path) > _LONGEST:
            raise _Refused(HTTPStatus.REQUEST_URI_TOO_LONG, "The address is too long.")
        place = urlsplit(path)
        settings = _settings(place.query)
        folder, _, name = place.path.lstrip("/").partition("/")
        if place.path == "/":
            return "text/html", fill_page(read_state(settings)), {}
        if folder == "static":
            return _TYPES.get(name.rpartition(".")[2], "text/plain"), _static(name), {}
        if folder == "panel":
            panel, state = self._panel(name, settings)
            content = panel.describe() | {"state": state.settings()}
            return "application/json", json.dumps(content), {}
        if folder == "figure" and name.endswith(".svg"):
            panel, _ = self._panel(name.removesuffix(".svg"), settings)
            saved = {"Content-Disposition": f'attachment; filename="expmech-{name}"'}
            return _TYPES["svg"], standalone(panel), saved
        raise _nothing()

    def _panel(self, name: str, settings: dict[str, str]) -> tuple[Panel, State]:
        if name not in PANELS:
            raise _nothing()
        width = _width(settings.pop("width", "640"))
        error = settings.pop("error", None)
        state = read_state(settings)
        with self._alone:  # the precision of ball arithmetic is one for all threads
            if error is not None:
                state = dataclasses.replace(state, epsilon=_solve(state, error))
            return PANELS[name](view_of(state), width), state


def make_server(port: int = 0) -> Server:
    """Return a server on 127.0.0.1; port 0 takes a free one. Call ``serve_forever`` on it."""
    valid = validate_integer(port, name="port", owner="explore", low=0, high=65535)
    return Server(valid)


def _settings(query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(
            query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=_MOST
        )
    except ValueError:
        raise ParameterError("The address must be a list of NAME=VALUE, joined by &.") from None
    if len({name for name, _ in pairs}) < len(pairs):
        raise ParameterError("The address must give every setting once.")
    return dict(pairs)


def _width(text: str) -> int:
    number: Any = int(text) if text.isdecimal() and len(text) < 6 else text[:40]
    return validate_integer(number, name="width", owner=OWNER, low=NARROWEST, high=WIDEST)


def _solve(state: State, error: str) -> Fraction:
    return epsilon_for(state, exact_amount(error, name="error", owner=OWNER))


def _static(name: str) -> str:
    text = read_static(name)
    if text is None:
        raise _nothing()
    return text


def _nothing() -> _Refused:
    return _Refused(HTTPStatus.NOT_FOUND, "There is nothing at this address.")
