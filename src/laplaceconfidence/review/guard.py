"""Access checks of the review page, made on every request before anything else.

A page of another site can make a browser send requests to this server, and its domain name can be made to
resolve to this machine. Therefore the headers Host and Origin must be those of this page. Requests that
change something need the token or its cookie, and so do all requests if the address is not a loopback one.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

LARGEST_REQUEST = 1_000_000  # bytes

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


def is_unspecified(host: str) -> bool:
    """Return whether an address stands for all addresses of this machine.

    Parameters
    ----------
    host : str
        A host name or an IP address.

    Returns
    -------
    bool
    """
    return _is_address(host) and ipaddress.ip_address(host).is_unspecified


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only.

    Parameters
    ----------
    host : str
        A host name or an IP address.

    Returns
    -------
    bool
    """
    if host == "localhost":
        return True
    return _is_address(host) and ipaddress.ip_address(host).is_loopback


@dataclass(frozen=True, slots=True)
class Access:
    """Where the page is served, and the token that grants access.

    Parameters
    ----------
    host : str
        Address of the server.
    port : int
        Port of the server.
    token : str
        A secret; drawn at random by default.
    """

    host: str
    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @property
    def needs_token(self) -> bool:
        """bool: whether every request needs the token."""
        return not is_loopback(self.host)

    @property
    def cookie(self) -> str:
        """str: name of the cookie; cookies ignore ports, so that two reviews on one machine need two."""
        return f"laplaceconfidence-{self.port}"

    @property
    def url(self) -> str:
        """str: the address to open in a browser, with the token if it is needed."""
        host = socket.gethostname() if is_unspecified(self.host) else self.host
        address = f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"
        return f"{address}?token={self.token}" if self.needs_token else address

    @property
    def names(self) -> frozenset[str]:
        """frozenset of str: names of this page in the Host header that are accepted."""
        names = {self.host, "localhost", "127.0.0.1", "::1"}
        if self.needs_token:
            names |= _own_names()
        return frozenset(name.lower() for name in names)


class Guard:
    """ASGI middleware that refuses requests that do not come from this page.

    Parameters
    ----------
    application : ASGI application
        What allowed requests are passed to.
    access : Access
        Where the page is served, and its token.
    """

    def __init__(self, application: Application, access: Access) -> None:
        self._application = application
        self._access = access
        self._names = access.names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        changes = scope["method"] not in ("GET", "HEAD")
        refusal = self._refusal(headers, changes)
        if refusal is not None:
            await _respond(send, 403, refusal)
            return
        sent = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["path"] == "/" and sent and self._is_token(sent):
            await _respond(send, 303, "", [(b"location", b"/"), self._set_cookie()])
            return
        known = self._is_known(headers)
        if not known and (changes or self._access.needs_token):
            await _respond(
                send,
                401,
                "This review needs its token: open the address that was printed when it was started.",
            )
            return
        length = headers.get("content-length") or "0"
        if not (length.isascii() and length.isdigit()):
            await _respond(send, 400, "The Content-Length header is not a number.")
            return
        if len(length) > 9 or int(length) > LARGEST_REQUEST or "transfer-encoding" in headers:
            await _respond(send, 413, "The request is too large.")
            return
        more = list(HEADERS)
        if not known and scope["path"] == "/":  # on a loopback address, opening the page is enough
            more.append(self._set_cookie())
        await self._application(scope, receive, _with_headers(send, more))

    def _refusal(self, headers: dict[str, str], changes: bool) -> str | None:
        host = headers.get("host", "").lower()
        if not self._is_own(host):
            return "The Host header is not the address of this page."
        origin = headers.get("origin")
        if origin is not None and _with_port(origin.lower()) != _with_port(f"http://{host}"):
            return "The request comes from another page."
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and (
            changes or headers.get("sec-fetch-dest") != "document"
        ):
            return "The request comes from another site."
        return None

    def _is_own(self, host: str) -> bool:
        """Whether a Host header names this page.

        Where every request needs the token, any IP address is accepted: this machine may have several, some
        of which only the router or the container in front of it knows. No page of another site can use one,
        as what such a page can make resolve to this machine is a domain name.
        """
        name, port = _split(host)
        if port != str(self._access.port):
            return False
        return name in self._names or (self._access.needs_token and _is_address(name))

    def _is_known(self, headers: dict[str, str]) -> bool:
        sent = headers.get("authorization", "")
        if sent.startswith("Bearer ") and self._is_token(sent.removeprefix("Bearer ")):
            return True
        cookies = dict(part.strip().partition("=")[::2] for part in headers.get("cookie", "").split(";"))
        return self._is_token(cookies.get(self._access.cookie, ""))

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self._access.token.encode())

    def _set_cookie(self) -> tuple[bytes, bytes]:
        value = f"{self._access.cookie}={self._access.token}; Path=/; HttpOnly; SameSite=Strict"
        return b"set-cookie", value.encode()


def _with_headers(send: Send, more: list[tuple[bytes, bytes]]) -> Send:
    async def send_more(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *more]}
        await send(message)

    return send_more


async def _respond(send: Send, status: int, text: str, more: list[tuple[bytes, bytes]] | None = None) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *HEADERS, *(more or [])]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})


def _split(host: str) -> tuple[str, str]:
    """Name and port of a Host header; browsers leave out port 80, which is that of http."""
    if host.startswith("["):
        name, _, rest = host[1:].partition("]")
        return name, rest.removeprefix(":") or "80"
    name, _, port = host.partition(":")
    return name, port or "80"


def _with_port(origin: str) -> tuple[str, str, str]:
    scheme, _, host = origin.partition("://")
    return scheme, *_split(host)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _own_names() -> set[str]:
    """Names and addresses of this machine."""
    name = socket.gethostname()
    names = {name, f"{name}.local", socket.getfqdn()}
    with suppress(OSError):  # a machine without a name service
        names |= {str(found[4][0]) for found in socket.getaddrinfo(name, None)}
    return names
