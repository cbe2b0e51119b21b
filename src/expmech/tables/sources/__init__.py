"""Tables in files, databases, Spark and memory, opened for a release."""

from expmech.tables.sources.opening import open_frame, open_source
from expmech.tables.sources.source import Source
from expmech.tables.sources.text_files import TextFormat

__all__ = ["Source", "TextFormat", "open_frame", "open_source"]
