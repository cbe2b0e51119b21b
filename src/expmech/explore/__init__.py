"""The three-way trade-off in a browser: privacy, accuracy and running time of made-up data.

A shell: every probability on the page comes from the library. It takes no data of anybody's.
"""

from expmech.explore.server import make_server

__all__ = ["make_server"]
