"""The server of the page: this machine only, GET only, one sentence for what makes no sense."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
from support.patience import PATIENCE
from typer.testing import CliRunner

from expmech.cli.main import app
from expmech.explore import make_server
from expmech.explore.page import STATIC
from expmech.explore.panels import PANELS
from expmech.explore.server import Server

Answer = tuple[int, dict[str, str], str]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with make_server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def ask(server: Server, path: str, *, method: str = "GET", host: str | None = None) -> Answer:
    place = server.server_address
    connection = http.client.HTTPConnection(str(place[0]), int(place[1]), timeout=PATIENCE)
    try:
        connection.request(method, path, headers={} if host is None else {"Host": host})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def test_the_server_listens_on_this_machine_only(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.socket.family == socket.AF_INET


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\n", b"GET / HT"])
def test_a_silent_connection_is_closed(
    server: Server, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    handler: Any = server.RequestHandlerClass
    assert 0.0 < handler.timeout < 3600.0
    monkeypatch.setattr(handler, "timeout", 0.05)
    with socket.create_connection(("127.0.0.1", int(server.server_address[1]))) as connection:
        connection.sendall(said)
        assert connection.recv(1) == b""  # it waits as long as it takes: the server ends it


def test_the_page_names_no_other_host_and_allows_none(server: Server) -> None:
    status, headers, page = ask(server, "/")
    assert status == 200
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    parts = [
        page,
        *(files("expmech.explore").joinpath("static", one).read_text() for one in STATIC),
    ]
    for text in parts:
        rest = text.replace("http://www.w3.org/2000/svg", "")
        assert "http" not in rest.replace("http-equiv", ""), rest[:80]
        assert "//" not in "".join(line for line in rest.splitlines() if "src=" in line)
    assert "made up" in page
    assert "no upload" in page


@pytest.mark.parametrize("name", STATIC)
def test_the_files_of_the_page_are_served_with_their_type(server: Server, name: str) -> None:
    status, headers, text = ask(server, f"/static/{name}")
    assert status == 200
    assert text
    kinds = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    assert headers["Content-Type"].startswith(kinds[name.rpartition(".")[2]])


def test_a_panel_is_json_with_its_state_and_a_figure_is_a_file(server: Server) -> None:
    status, _, text = ask(server, "/panel/answers?question=mean&epsilon=0.5&width=300")
    found = json.loads(text)
    assert status == 200
    assert found["state"]["epsilon"] == "0.5"
    status, headers, text = ask(server, "/figure/answers.svg?question=mean&epsilon=0.5")
    assert status == 200
    assert headers["Content-Disposition"] == 'attachment; filename="expmech-answers.svg"'
    assert "#0072b2" in text
    assert ElementTree.fromstring(text).tag.endswith("svg")


def test_an_error_in_the_place_of_epsilon_is_solved_for(server: Server) -> None:
    _, _, text = ask(server, "/panel/answers?question=mean&error=1")
    found = json.loads(text)
    assert found["state"]["epsilon"] == "0.899"
    assert found["numbers"]["error"] <= 1.0


@pytest.mark.parametrize("host", ["example.org", "example.org:80", "127.0.0.1", "127.0.0.1:1"])
def test_a_foreign_host_is_refused(server: Server, host: str) -> None:
    for path in ("/", "/panel/answers"):
        status, _, text = ask(server, path, host=host)
        assert status == 403
        assert "only" in text
    port = server.server_address[1]
    assert ask(server, "/", host=f"localhost:{port}")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
def test_other_methods_than_get_are_refused(server: Server, method: str) -> None:
    assert ask(server, "/", method=method)[0] == 405


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nothing", 404),
        ("/panel/nothing", 404),
        ("/figure/answers.png", 404),
        ("/static/../server.py", 404),
        ("/static/index.html", 404),
        ("/?rows=abc", 400),
        ("/?rows=10&rows=20", 400),
        ("/?rows", 400),
        ("/?file=/etc/passwd", 400),
        ("/?" + "&".join(f"a{j}=1" for j in range(60)), 400),
        ("/panel/answers?width=100000", 400),
        ("/panel/answers?width=-1", 400),
        ("/panel/answers?rows=1e9", 400),
        ("/panel/answers?error=no", 400),
        ("/panel/answers?question=regression&error=1", 400),
        ("/panel/answers?error=1e-300", 400),
        ("/?x=" + "a" * 3000, 414),
        ("/?question=%3Cscript%3Ealert(1)%3C/script%3E", 400),
    ],
)
def test_a_bad_address_gets_one_sentence(server: Server, path: str, status: int) -> None:
    found, _, text = ask(server, path)
    assert found == status
    assert "Traceback" not in text
    assert "<script>" not in text
    if path.startswith("/panel"):
        assert json.loads(text)["error"].endswith(".")
    else:
        assert text.count("<p>") == 2


def test_a_mistake_of_ours_shows_no_traceback(
    server: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("inner workings")

    monkeypatch.setitem(PANELS, "answers", broken)
    status, _, text = ask(server, "/panel/answers")
    assert status == 500
    assert "inner workings" not in text
    assert capfd.readouterr().err == ""


def test_the_command_says_where_the_page_is_and_ends_quietly() -> None:
    run = "from expmech.cli.main import main; main()"
    words = [sys.executable, "-W", "error", "-c", run, "explore", "--no-browser", "--port", "0"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        address = urlsplit(process.stdout.readline().split()[0])
        assert address.hostname == "127.0.0.1"
        connection = http.client.HTTPConnection(address.netloc, timeout=PATIENCE)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
        connection.close()
        process.send_signal(signal.SIGINT)
        said, complained = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert said.strip() == "stopped."
    assert complained == ""


def test_a_port_that_is_taken_or_none_is_one_clear_error(server: Server) -> None:
    port = str(server.server_address[1])
    done = CliRunner().invoke(app, ["explore", "--no-browser", "--port", port])
    assert done.exit_code == 1
    assert f"`--port` must be free; {port} is in use" in done.output
    done = CliRunner().invoke(app, ["explore", "--no-browser", "--port", "70000"])
    assert done.exit_code == 1
    assert "`port` of explore must be" in done.output
