"""Serve the review page: choose a port, open the browser, shut down."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Callable

from laplaceconfidence.exceptions import InvalidInputError, MissingDependencyError
from laplaceconfidence.records.audit_run import AuditRun
from laplaceconfidence.review.guard import Access
from laplaceconfidence.validation import check_choice, must_be


def listening_socket(host: str, port: int) -> socket.socket:
    """Open a listening socket.

    Parameters
    ----------
    host : str
        Address to listen on.
    port : int
        Port to listen on; 0 chooses a free one.

    Returns
    -------
    socket.socket

    Raises
    ------
    InvalidInputError
        If the address or the port cannot be used.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # asyncio sends small responses at once only on sockets created as TCP: saves 40 ms per response.
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InvalidInputError(
            f"The 'host' parameter must be an address of this machine. Got {host!r}: {error}."
        ) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise InvalidInputError(
            f"Port {port} of {host} cannot be used ({error.strerror}): choose another with --port, or leave "
            "it out for a free one."
        ) from error
    return listener


def serve(
    run: AuditRun,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    reviewer: str,
    queue: str | None = None,
    open_browser: bool = True,
    announce: Callable[[str, Access], None],
) -> None:
    """Serve the review of an audit until interrupted.

    Parameters
    ----------
    run : AuditRun
        The audit to review.
    host : str, default="127.0.0.1"
        Address to listen on.
    port : int, default=0
        Port to listen on; 0 chooses a free one.
    reviewer : str
        Name of the reviewer that the page suggests.
    queue : {"worst", "random", "unlabeled", "outliers", "copies", "leaks"}, optional
        The queue that the page begins with; by default that of the suspects.
    open_browser : bool, default=True
        Whether to open the page in a browser.
    announce : callable
        Called with the address of the page and its access once the server listens.
    """
    try:
        import uvicorn

        from laplaceconfidence.review.server import create_app
    except ImportError as error:
        raise MissingDependencyError(
            f"The review page needs {error.name}: pip install 'laplaceconfidence[review]'"
        ) from error
    from laplaceconfidence.review.queues import QUEUES
    from laplaceconfidence.review.session import ReviewSession

    if queue is not None:
        check_choice(queue, "queue", QUEUES)
    listener = listening_socket(host, port)
    access = Access(host, int(listener.getsockname()[1]))
    session = ReviewSession(run)
    try:
        filled = [name for name, rows in session.queues.rows_of.items() if len(rows) or name == "worst"]
        if queue is not None and queue not in filled:
            raise must_be("queue", f"one that this run has samples for: {', '.join(filled)}", queue)
        address = access.url if queue is None else f"{access.url}#view={queue}"
        app = create_app(session, access, reviewer=reviewer)
        settings = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=2,
        )
        server = uvicorn.Server(settings)
        announce(address, access)
        if open_browser:
            # In a thread of its own, as some browsers block until they are closed.
            threading.Timer(0.3, webbrowser.open, [address]).start()
        server.run(sockets=[listener])
    finally:
        listener.close()
        session.close()
