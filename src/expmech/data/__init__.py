"""Data where it lives.

DuckDB, PostgreSQL and Spark through Ibis, with integer aggregates computed in the engine.
"""

from expmech.data.aggregate import moments, tally
from expmech.data.frames import open_frame
from expmech.data.places import histogram
from expmech.data.releasing import release
from expmech.data.source import DataError, Source, open_source
from expmech.data.text_format import TextFormat
from expmech.statistics import Moments

__all__ = [
    "DataError",
    "Moments",
    "Source",
    "TextFormat",
    "histogram",
    "moments",
    "open_frame",
    "open_source",
    "release",
    "tally",
]
