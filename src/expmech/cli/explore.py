"""`expmech explore`: the trade-off of privacy, accuracy and time, in a browser."""

from __future__ import annotations

import errno
import webbrowser
from typing import Annotated

import typer

from expmech.cli.common import user_errors
from expmech.cli.console import output
from expmech.core.errors import ParameterError

app = typer.Typer(add_completion=False)

_PORT = 8765  # a fixed one, so that links of yesterday lead somewhere
Port = Annotated[int, typer.Option("--port", help="Where on this machine; 0 takes any.")]
Shown = Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in the browser.")]


@app.command()
def explore(port: Port = _PORT, browser: Shown = True) -> None:
    """Open a page of made-up data: what epsilon, error and running time do to each other.

    The page is served on 127.0.0.1 only, asks no other machine for anything and takes no data.
    """
    from expmech.explore import make_server  # a page is seldom asked for

    with user_errors():
        try:
            server = make_server(port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise ParameterError(
                f"`--port` must be free; {port} is in use. Take another, or 0 for any."
            ) from None
        with server:
            try:
                output.print(f"{server.address} (Ctrl-C ends it)")
                output.file.flush()  # whoever reads a pipe waits for the address
                if browser:
                    webbrowser.open(server.address)
                server.serve_forever()
            except KeyboardInterrupt:
                output.print("stopped.")
