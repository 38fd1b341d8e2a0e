"""Who is let in, and what is never served."""

import os
import socket
from pathlib import Path

import pytest
from PIL import Image
from review_page import PORT, OpenPage
from starlette.testclient import TestClient

from audited_runs import MakeRun
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.records.listed_files import file_within
from laplaceconfidence.review.guard import Access, is_loopback
from laplaceconfidence.review.server import create_app
from laplaceconfidence.review.serving import listening_socket

pytest.importorskip("fastapi")
OPEN = {"view": "worst"}


def test_a_foreign_host_is_refused(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run())
    for host in ("evil.example", "evil.example:8421", "127.0.0.1", "127.0.0.1:80", ""):
        assert page.client.get("/", headers={"Host": host}).status_code == 403
    assert page.client.get("/", headers={"Host": "localhost:8421"}).status_code == 200


def test_a_foreign_page_is_refused(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run())
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        assert page.client.post("/api/next", json=OPEN, headers=headers).status_code == 403
    assert page.client.get("/picture/tile/0", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    own = {"Origin": "http://127.0.0.1:8421", "Sec-Fetch-Site": "same-origin"}
    assert page.client.post("/api/next", json=OPEN, headers=own).status_code == 200


def test_changes_need_the_cookie_or_the_token(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run(), visit=False)
    body = {"row": 0, "verdict": "keep", "version": 0, "who": "ann"}
    assert page.client.post("/api/decisions", json=body).status_code == 401
    bearer = {"Authorization": f"Bearer {page.access.token}"}
    assert page.client.post("/api/decisions", json=body, headers=bearer).status_code == 200
    cookie = page.client.get("/").headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie


def test_another_address_needs_the_token_for_everything(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run(), "192.0.2.7", visit=False)
    assert page.access.token in page.access.url
    for path in ("/", "/api/setup", "/static/main.js", "/picture/tile/0", "/?token=wrong"):
        assert page.client.get(path).status_code == 401
    opened = page.client.get(f"/?token={page.access.token}")
    assert opened.status_code == 200  # after a redirect, and without the token in the address
    assert "token" not in str(opened.url)
    assert page.client.get("/api/setup").status_code == 200


def test_the_page_has_no_inline_script_and_a_policy(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run())
    answer = page.client.get("/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert answer.text.count("<script") == 1
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "style=" not in answer.text
    assert " on" + "click" not in answer.text


def test_a_folder_name_is_escaped(make_run: MakeRun, open_page: OpenPage, tmp_path: Path) -> None:
    from laplaceconfidence.records import read_audit

    renamed = make_run().folder.rename(tmp_path / "<script>alert(1)")
    page = open_page(read_audit(renamed))
    assert "<script>alert" not in page.client.get("/").text


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/static/..%2fserver.py",
        "/picture/large/..%2f..%2fetc%2fpasswd",
        "/picture/large/90",
        "/picture/huge/1",
        "/decisions.sqlite",
        "/openapi.json",
        "/docs",
    ],
)
def test_nothing_else_is_served(make_run: MakeRun, open_page: OpenPage, path: str) -> None:
    page = open_page(make_run("parquet"))
    assert page.client.get(path).status_code in (404, 422)


def test_links_that_leave_the_data_folder_are_refused(
    make_run: MakeRun, open_page: OpenPage, tmp_path: Path
) -> None:
    run = make_run("parquet")
    images = tmp_path / "data" / "images"
    secret = tmp_path / "secret.png"
    Image.new("RGB", (9, 9)).save(secret)
    for number, target in ((3, secret), (4, images / "5.png"), (6, images / "6.png")):
        (images / f"{number}.png").unlink()
        (images / f"{number}.png").symlink_to(target)
    page = open_page(run)
    codes = [page.client.get(f"/picture/large/{number}").status_code for number in (3, 4, 6)]
    assert codes == [404, 200, 404]  # leads out; stays inside; leads to itself


def test_only_plain_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "folder.png").mkdir()
    assert file_within(tmp_path / "pipe.png", None) is None
    assert file_within(tmp_path / "folder.png", None) is None
    assert file_within(tmp_path / "missing.png", None) is None
    assert file_within(Path("bad\0name"), None) is None


def test_large_requests_are_refused(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run())
    assert page.client.post("/api/next", json={"search": "x" * 2_000_000}).status_code == 413


def test_a_port_in_use_is_said_so() -> None:
    with listening_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInputError, match=rf"Port {port} of 127.0.0.1 cannot be used.*--port"):
            listening_socket("127.0.0.1", port)


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        listening_socket("192.0.2.1", 0)


def test_addresses() -> None:
    assert is_loopback("127.0.0.1")
    assert is_loopback("localhost")
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.0")
    assert Access("::1", 80).url == "http://[::1]:80/"
    assert socket.gethostname().lower() in Access("0.0.0.0", 80).names


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
def test_every_address_of_this_machine_opens_the_page_with_its_token(
    make_run: MakeRun, open_page: OpenPage, host: str
) -> None:
    page = open_page(make_run(), "192.0.2.7", visit=False)
    guard = create_app(page.session, Access(host, PORT, page.access.token), reviewer="ann")
    for name in ("198.51.100.3", "[2001:db8::5]", socket.gethostname()):
        client = TestClient(guard, base_url=f"http://{name}:{PORT}")
        assert client.get("/").status_code == 401
        assert client.get("/", params={"token": page.access.token}).status_code == 200
        own = {"Origin": f"http://{name}:{PORT}"}
        assert client.post("/api/next", json=OPEN, headers=own).status_code == 200
        another = {"Origin": f"http://198.51.100.4:{PORT}"}
        assert client.post("/api/next", json=OPEN, headers=another).status_code == 403
    bearer = {"Authorization": f"Bearer {page.access.token}"}
    for name in ("evil.example:8421", "198.51.100.3", "198.51.100.3:80", "[::1", "[]:8421", ":8421"):
        assert client.get("/", headers=bearer | {"Host": name}).status_code == 403


def test_a_loopback_address_does_not_accept_other_addresses(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run())
    assert page.client.get("/", headers={"Host": f"198.51.100.3:{PORT}"}).status_code == 403


def test_port_80_is_left_out_by_browsers(make_run: MakeRun, open_page: OpenPage) -> None:
    page = open_page(make_run(), visit=False)
    client = TestClient(
        create_app(page.session, Access("127.0.0.1", 80), reviewer="ann"), base_url="http://127.0.0.1"
    )
    for host in ("127.0.0.1", "127.0.0.1:80", "localhost", "[::1]"):
        assert client.get("/", headers={"Host": host}).status_code == 200
    own = {"Origin": "http://127.0.0.1"}
    assert client.post("/api/next", json=OPEN, headers=own).status_code == 200
    for host in ("127.0.0.1:8421", "evil.example"):
        assert client.get("/", headers={"Host": host}).status_code == 403


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"view": NaN}',
        b'{"given": 1e999}',
        b'{"search": "\\ud800"}',
        b'{"\\ud800": 1}',
        b'{"given": ' + b"9" * 5000 + b"}",
    ],
    ids=range(10),
)
def test_malformed_json_is_refused_with_a_message(
    make_run: MakeRun, open_page: OpenPage, body: bytes
) -> None:
    page = open_page(make_run())
    for path in ("/api/next", "/api/grid", "/api/sample/1", "/api/decisions", "/api/undo", "/api/bulk"):
        answer = page.client.post(path, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code in (400, 422)
        assert "not" in answer.json()["message"]
    assert page.client.get("/", headers={"Content-Length": "x"}).status_code == 400
