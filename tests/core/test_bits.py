"""The generator, alone and through a release: one fresh key each, and no bit of it used twice."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray
from support.statistics import prepare_release

import expmech as em
from expmech.certificates.mechanism import PreparedDraw
from expmech.core import bits
from expmech.core.bits import OPERATING_SYSTEM, ChaChaBits, operating_system_bits, seeded_bits
from expmech.core.coins import Coins
from expmech.mechanisms.noisy_sums.noisy_sums import NoisyMean
from expmech.tables.aggregates import Tally
from expmech.tables.statistics import MostFrequent

KEY = bytes(range(32))
ROWS = np.array([[0.2], [0.4], [0.9]])


def key_stream(key: bytes, size: int, nonce: int = 0) -> bytes:
    """Return the first bytes of ChaCha20's key stream, from the cipher itself."""
    counter_and_nonce = bytes(4) + nonce.to_bytes(12, "little")
    cipher = Cipher(algorithms.ChaCha20(key, counter_and_nonce), mode=None)
    return cipher.encryptor().update(bytes(size))


def assert_disjoint(taken: list[bytes], stream: bytes) -> None:
    """Every piece is a piece of the stream, and no two share a byte."""
    used: set[int] = set()
    for piece in taken:
        place = stream.find(piece)
        assert place >= 0, "what was taken is not from the stream"
        positions = set(range(place, place + len(piece)))
        assert not used & positions, "a part of the stream was used twice"
        used |= positions


@pytest.fixture(autouse=True)
def _same_keys() -> None:
    """Leave the operating system's keys as they are: these tests watch them."""


class Recorder:
    """Keeps what the operating system was asked for, and what was taken from streams."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.keys: list[bytes] = []
        self.taken: list[bytes] = []
        real_take, real_urandom = ChaChaBits.take, os.urandom

        def urandom(size: int) -> bytes:
            self.keys.append(real_urandom(size))
            return self.keys[-1]

        def take(stream: ChaChaBits, dtype: Any, count: int) -> NDArray[Any]:
            found = real_take(stream, dtype, count)
            if stream.source == OPERATING_SYSTEM:
                self.taken.append(found.tobytes())
            return found

        monkeypatch.setattr(os, "urandom", urandom)
        monkeypatch.setattr(ChaChaBits, "take", take)


def test_small_requests_read_the_stream_on_and_never_back() -> None:
    stream = ChaChaBits(KEY, "test")
    sizes = [1, 2, 1, 5, 1, 1, 3, 40, 1, 700, 2, 1]
    taken = [stream.take(np.uint64, size).tobytes() for size in 60 * sizes]
    assert [len(piece) for piece in taken] == [8 * size for size in 60 * sizes]
    assert_disjoint(taken, key_stream(KEY, 1 << 20))
    # within a block nothing is skipped either: the first requests lie side by side
    assert b"".join(taken[:8]) == key_stream(KEY, 8 * sum(sizes[:8]))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_words_of_every_width_come_from_the_stream_bit_by_bit(dtype: Any) -> None:
    stream = ChaChaBits(KEY, "test")
    one_by_one = np.concatenate([stream.take(dtype, 1) for _ in range(64)])
    assert one_by_one.dtype == dtype
    assert one_by_one.tobytes() == key_stream(KEY, 64 * np.dtype(dtype).itemsize)


def test_large_and_small_requests_do_not_overlap() -> None:
    stream = ChaChaBits(KEY, "test")
    taken = [stream.take(np.uint64, size).tobytes() for size in (1, 3000, 1, 150_000, 2, 2048, 9)]
    assert_disjoint(taken, key_stream(KEY, 1 << 21))


def test_a_stream_that_is_used_up_goes_on_with_another_nonce(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bits, "_BYTES_PER_NONCE", 1 << 17)
    stream = ChaChaBits(KEY, "test")
    taken = [stream.take(np.uint64, 1 << 13).tobytes() for _ in range(6)]
    expected = [
        piece
        for nonce in range(3)
        for piece in np.split(np.frombuffer(key_stream(KEY, 1 << 17, nonce), dtype=np.uint64), 2)
    ]
    assert taken == [piece.tobytes() for piece in expected]
    # a request that no longer fits begins the next nonce, and does not run on
    stream = ChaChaBits(KEY, "test")
    stream.take(np.uint64, 1 << 13)
    assert stream.take(np.uint64, 1 << 14).tobytes() == key_stream(KEY, 1 << 17, nonce=1)


def test_a_nonce_ends_before_the_counter_of_the_cipher_does() -> None:
    assert bits._BYTES_PER_NONCE < 64 << 32  # 64 bytes a block, a counter of 32 bits


def test_a_key_of_256_bits_is_used_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch)
    first, second = operating_system_bits(), operating_system_bits()
    assert [len(key) for key in recorder.keys] == [32, 32]
    for stream, key in zip((first, second), recorder.keys, strict=True):
        assert stream.source == OPERATING_SYSTEM
        assert stream.take(np.uint64, 100).tobytes() == key_stream(key, 800)


def mechanisms() -> dict[str, PreparedDraw]:
    """Releases of every kind that are settled but for the draw."""
    mean = em.ExponentialMechanism(loss=em.losses.L1Mean(ROWS), domain=em.Box([0.0], [1.0]))
    noisy = NoisyMean.from_rows(ROWS, lower=[0.0], upper=[1.0], adjacency="add-remove")
    frequent = MostFrequent(
        column="c",
        candidates=(1, 2),
        labels=("one", "two"),
        adjacency=em.Adjacency.REPLACE,
    )
    settled = prepare_release(frequent, epsilon=Fraction(1), count=3)
    samplers: list[Any] = [
        em.Rejection(),
        em.Rejection(em.Uniform()),
        em.ConfAtomPerfect(0.5),
        em.ConfAtomAndRuntimePerfect("constant"),
        em.Metropolis(steps=50),
        em.BoxTree(),
        em.Separable(),
    ]
    ready = {one.label: mean.prepare(epsilon=1.0, sampler=one) for one in samplers}
    return ready | {
        "NoisyMean": noisy.prepare(epsilon=1.0),
        "MostFrequent": settled.with_aggregate(Tally(counts=(2, 1), rows=3)),
    }


@pytest.mark.parametrize("name", mechanisms())
def test_a_release_is_drawn_from_one_fresh_key_and_uses_no_word_twice(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = mechanisms()[name]
    recorder = Recorder(monkeypatch)
    released = ready.release()
    (key,) = recorder.keys
    assert len(key) == 32
    assert recorder.taken, "a release that takes no random bits"
    # requests of a byte or two are found in many places: only longer ones are told apart
    assert_disjoint([one for one in recorder.taken if len(one) >= 8], key_stream(key, 1 << 22))
    again = ready.postprocessing.apply(ready.draw(Coins(ChaChaBits(key, "test")), 1).values[0])
    assert np.array_equal(np.asarray(released.value), np.asarray(again))
    ready.release()
    assert len(set(recorder.keys)) == 2
    assert released.certificate.randomness == OPERATING_SYSTEM


def test_a_study_takes_nothing_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = mechanisms()["NoisyMean"]
    recorder = Recorder(monkeypatch)
    study = ready.study(3)
    assert recorder.keys == []
    assert (study.certificate.kind, study.certificate.randomness) == (
        "study, not a release",
        bits.SEEDED,
    )
    assert not np.array_equal(
        seeded_bits([1, 2]).take(np.uint64, 4), seeded_bits([12]).take(np.uint64, 4)
    )
