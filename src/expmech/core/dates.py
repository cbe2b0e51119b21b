"""Dates as days since 1970-01-01, and back: text of a public number of days."""

from __future__ import annotations

import datetime
import math
from fractions import Fraction

from expmech.core.errors import ParameterError

FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
"""0001-01-01 and the last second of 9999-12-31, in seconds since 1970: what ISO 8601 spells."""

SECONDS_PER_DAY = 86_400

_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_MICROSECONDS_PER_DAY = SECONDS_PER_DAY * 10**6


def date_text(days: float) -> str:
    """Return days since 1970 as an ISO date, with the time to the microsecond if there is one.

    >>> date_text(18262.0), date_text(18262.5)
    ('2020-01-01', '2020-01-01T12:00:00')
    """
    return _text(_EPOCH + round(Fraction(days) * _MICROSECONDS_PER_DAY) * _MICROSECOND)


def _text(moment: datetime.datetime) -> str:
    return moment.date().isoformat() if moment.time() == datetime.time() else moment.isoformat()


def days_of_text(text: str) -> float:
    """Return the days since 1970 that :func:`date_text` wrote; raise for any other text.

    >>> days_of_text("2020-01-01T12:00:00")
    18262.5
    """
    try:
        moment = datetime.datetime.fromisoformat(text)
    except (TypeError, ValueError):
        moment = None
    if moment is None or _text(moment) != text or moment.tzinfo is not None:
        raise ParameterError("A released date must be an ISO date such as 2020-01-31.")
    return (moment - _EPOCH) // _MICROSECOND / _MICROSECONDS_PER_DAY


def nearest_day(text: str, direction: int = 0) -> str:
    """Return the date nearest to a time; the one before for -1, and the one after for 1.

    >>> [nearest_day("2020-01-01T13:00:00", direction) for direction in (-1, 0, 1)]
    ['2020-01-01', '2020-01-02', '2020-01-02']
    """
    days = days_of_text(text)
    whole = (round(days), math.ceil(days), math.floor(days))[direction]
    return date_text(min(float(whole), float(LAST_SECOND // SECONDS_PER_DAY)))
