"""Random bits: a ChaCha20 key stream, keyed by the operating system or, for studies, by a seed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms
from numpy.typing import NDArray

from expmech.core.arrays import Array
from expmech.core.errors import ParameterError, ParameterTypeError

_BLOCK = 1 << 16  # bytes generated at a time for small requests
_ZEROS = memoryview(bytes(1 << 20))  # the key stream is what the cipher makes of zeros
_BYTES_PER_NONCE = 1 << 37  # half of what ChaCha20's 32-bit block counter can address

OPERATING_SYSTEM = "operating system (ChaCha20)"
SEEDED = "seeded stream (studies only)"


class Bits(Protocol):
    """A source of independent fair bits."""

    source: str

    def take(self, dtype: type[np.unsignedinteger[Any]], count: int) -> Array:
        """Return ``count`` unsigned integers whose bits are independent and fair."""


class ChaChaBits:
    """The ChaCha20 key stream of a 256-bit key, read as unsigned integers.

    Make one with :func:`operating_system_bits` or :func:`seeded_bits`.
    """

    def __init__(self, key: bytes, source: str) -> None:
        self.source = source
        self._key = key
        self._stream: CipherContext
        self._nonce, self._left = -1, 0
        self._buffer = np.empty(0, dtype=np.uint8)

    def _generate(self, n_bytes: int) -> NDArray[np.uint8]:
        if n_bytes > self._left:
            # A nonce is used once under a key, so no part of the stream comes twice.
            self._nonce += 1
            counter_and_nonce = bytes(4) + self._nonce.to_bytes(12, "little")
            cipher = Cipher(algorithms.ChaCha20(self._key, counter_and_nonce), mode=None)
            self._stream = cipher.encryptor()
            self._left = _BYTES_PER_NONCE
        self._left -= n_bytes
        stream = np.empty(n_bytes, dtype=np.uint8)
        for first in range(0, n_bytes, len(_ZEROS)):
            part = stream.data[first : first + len(_ZEROS)]
            self._stream.update_into(_ZEROS[: len(part)], part)
        return stream

    def take(self, dtype: type[np.unsignedinteger[Any]], count: int) -> Array:
        """Return ``count`` unsigned integers of ``dtype`` from the stream."""
        n_bytes = np.dtype(dtype).itemsize * count
        if n_bytes > _BLOCK // 4:
            return self._generate(n_bytes).view(dtype)
        if n_bytes > self._buffer.size:
            self._buffer = self._generate(_BLOCK)
        # Each byte is handed out once: what is taken leaves the buffer.
        taken, self._buffer = self._buffer[:n_bytes], self._buffer[n_bytes:]
        return np.frombuffer(taken.tobytes(), dtype=dtype)


def operating_system_bits() -> ChaChaBits:
    """Return a stream with a fresh 256-bit key of the operating system: the source of releases.

    >>> operating_system_bits().take(np.uint8, 3).shape
    (3,)
    """
    # A fresh key per source: no state is carried from one release to the next.
    return ChaChaBits(os.urandom(32), OPERATING_SYSTEM)


def seeded_bits(seed: int | Sequence[int]) -> ChaChaBits:
    """Return the reproducible stream of ``seed``, for studies and tests: never of a release.

    >>> bool((seeded_bits(1).take(np.uint8, 9) == seeded_bits(1).take(np.uint8, 9)).all())
    True
    """
    parts: list[int] = list(seed) if isinstance(seed, Sequence) else [seed]
    for part in parts:
        rule = "`seed` must be a whole number that is at least 0, or a list of them"
        if isinstance(part, bool) or not isinstance(part, (int, np.integer)):
            raise ParameterTypeError(f"{rule}; got {seed!r}.")
        if part < 0:
            raise ParameterError(f"{rule}; got {seed!r}.")
    text = "expmech study stream " + " ".join(str(int(part)) for part in parts)
    return ChaChaBits(hashlib.sha256(text.encode()).digest(), SEEDED)
