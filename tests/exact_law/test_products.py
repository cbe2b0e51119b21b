"""A box times a list: the law as shipped, cells, neighbours, certificates."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.problems import exact_law, neighbours, prepared

import expmech as em
from expmech.auditing.chain_law import ChainLaw, lattice_point
from expmech.auditing.enumeration import largest_log_ratio, law_of, total_variation
from expmech.domains.registry import rebuild_domain
from expmech.exponential.envelopes.cells import certify, split, whole
from expmech.exponential.samplers import Sampler
from expmech.exponential.samplers.box_tree import BoxTreeChain
from expmech.ledger.verification import verify_certificate

LEFTOVER = 1e-6
EPSILON = 1.5
ROWS = (0.1, 0.3, 0.35, 0.9)
LABELS = ["mean", "mirror", "end"]
DOMAIN = em.Product(em.Box([0.0], [1.0], bits=2), em.Candidates(LABELS))
SMALL = em.Product(em.Box([0.0], [1.0], bits=1), em.Candidates(LABELS))
Floats = NDArray[np.float64]


@pytest.fixture(autouse=True)
def _refine_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remember refinements, so that equal states of a chain are the same objects and merge."""
    monkeypatch.setattr(BoxTreeChain, "refine", functools.cache(BoxTreeChain.refine))


class Fits:
    """How far y is from one of three statistics, and a price for the second and the third."""

    convex = True
    gradient_error = 0.0

    def __init__(self, rows: tuple[float, ...], power: int = 1) -> None:
        mean, self.power = float(np.mean(rows)), power
        self.centers = np.array([mean, 1.0 - mean, 1.0])

    def __call__(self, y: Floats) -> Floats:
        which = y[:, -1].astype(int)
        far = np.abs(y[:, 0] - self.centers[which])
        return np.asarray((far if self.power == 1 else far**2) + 0.1 * which)

    def gradient(self, y: Floats) -> Floats:
        return np.asarray(2.0 * (y[:, :1] - self.centers[y[:, -1].astype(int)][:, None]))


def nearest(loss: Fits, lower: Floats, upper: Floats) -> Floats:
    """The loss at the point of each box that is nearest to the center."""
    center = loss.centers[lower[:, -1].astype(int)]
    inside = np.minimum(np.maximum(center, lower[:, 0]), upper[:, 0])
    return loss(np.column_stack([inside, lower[:, -1]]))


def mechanism(
    kind: str, rows: tuple[float, ...] = ROWS, domain: em.Domain = DOMAIN, base: Any = None
) -> em.ExponentialMechanism:
    loss = Fits(rows, power=2 if kind == "gradient" else 1)
    known: dict[str, dict[str, Any]] = {
        "Lipschitz": {"lipschitz": [1.0]},
        "gradient": {"convex": True, "gradient": loss.gradient, "gradient_error": 2.0**-50},
        "own bounds": {"lower_bound": functools.partial(nearest, loss)},
    }
    return em.ExponentialMechanism(
        loss=lambda y: loss(y),
        sensitivity=(2 if kind == "gradient" else 1) / len(rows),
        domain=domain,
        bound=1.3,
        base=base,
        **known[kind],
    )


SAMPLERS: dict[str, Sampler] = {
    "rejection": em.Rejection(batch=1),
    "tabulated": em.Tabulated(),
    "tabulated, constant": em.ConstantTabulated(),
    "atom": em.ConfAtomPerfect(0.5, proposal="uniform"),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_law_is_the_exponential_mechanism_of_both_choices(name: str) -> None:
    chain, target = prepared(mechanism("Lipschitz"), SAMPLERS[name])
    enumerated = ChainLaw(chain, lattice_point, leftover=LEFTOVER)
    assert enumerated.leftover <= LEFTOVER
    assert total_variation(enumerated.law, exact_law(target)) <= LEFTOVER


@pytest.mark.parametrize("kind", ["Lipschitz", "gradient", "own bounds"])
def test_the_box_tree_has_the_law_of_both_choices(kind: str) -> None:
    chain, target = prepared(mechanism(kind, domain=SMALL), em.BoxTree(batch=1))
    enumerated = ChainLaw(chain, lattice_point, leftover=LEFTOVER)
    assert enumerated.leftover <= LEFTOVER
    assert total_variation(enumerated.law, exact_law(target)) <= LEFTOVER


@pytest.mark.parametrize("kind", ["Lipschitz", "gradient", "own bounds"])
def test_cells_partition_the_product_and_their_bounds_hold(kind: str) -> None:
    domain = em.Product(em.Box([0.0], [1.0], bits=5), em.Candidates(LABELS))
    target = mechanism(kind, domain=domain).target(epsilon=40.0)
    bounds, seen = certify(target), target.domain.all_indices(1 << 8)
    assert seen is not None
    energies, cells = target.energy(seen), whole(certify(target))
    for _ in range(4):
        owners = np.zeros(len(seen), dtype=int)
        for low, last, bound in zip(cells.low, cells.last, cells.bound, strict=True):
            inside = ((seen >= low) & (seen <= last)).all(axis=1)
            owners += inside
            assert energies[inside].min() >= bound
        assert (owners == 1).all()
        cells = split(cells, bounds)


def test_a_prior_over_both_choices() -> None:
    base = em.BaseMeasure(lambda y: -y[:, 0] - y[:, 1], lipschitz=[1.0])
    chain, target = prepared(mechanism("Lipschitz", domain=SMALL, base=base), em.BoxTree(batch=1))
    enumerated = ChainLaw(chain, lattice_point, leftover=LEFTOVER)
    assert total_variation(enumerated.law, exact_law(target)) <= LEFTOVER
    plain = exact_law(mechanism("Lipschitz", domain=SMALL).target(epsilon=1.0))
    assert total_variation(enumerated.law, plain) > 0.1


@pytest.mark.parametrize("sampler", [em.BoxTree(batch=1), em.Tabulated()], ids=["tree", "table"])
def test_both_choices_are_private_for_all_neighbours(sampler: Sampler) -> None:
    pair = em.Product(SMALL.box, em.Candidates(LABELS[:2]))

    @functools.cache
    def law(rows: tuple[float, ...]) -> dict[Hashable, float]:
        chain, _ = prepared(mechanism("Lipschitz", rows, domain=pair), sampler, epsilon=EPSILON)
        return ChainLaw(chain, lattice_point, leftover=1e-7).law

    worst = max(
        largest_log_ratio(law(one), law(other)) for one, other in neighbours((0.0, 0.5, 1.0), 2)
    )
    assert EPSILON / 4 < worst <= EPSILON


def test_both_choices_are_private_where_rows_are_added_and_removed() -> None:
    values = np.array([0.2, 0.6, 0.6, 0.9])

    def counts(n: int) -> Any:
        kept = values[:n]

        def loss(y: Floats) -> Floats:
            below = np.array([float((kept <= at).sum()) for at in y[:, 0]])
            return np.where(y[:, 1] == 0.0, below, n - below)

        return em.ExponentialMechanism(
            loss=loss, sensitivity=1, domain=DOMAIN, bound=4.0, adjacency="add-remove"
        )

    laws = [dict(enumerate(counts(n).law(epsilon=1.0)[1])) for n in range(5)]
    for fewer, more in itertools.pairwise(laws):
        assert largest_log_ratio(fewer, more) <= 1.0  # type: ignore[arg-type]


def test_the_uniform_draw_is_uniform_and_public_points_are_pairs() -> None:
    law, _ = law_of(lambda coins: tuple(DOMAIN.draw_uniform(coins, 1)[0].tolist()))
    listed = DOMAIN.all_indices(12)
    assert listed is not None
    assert set(law) == set(map(tuple, listed.tolist()))
    assert max(law.values()) - min(law.values()) < 1e-12
    assert DOMAIN.contains(listed).all()
    assert DOMAIN.contains_points(DOMAIN.points(listed)).all()
    assert not DOMAIN.contains(np.array([[0, 3], [4, 0], [-1, 1]])).any()
    assert {pair.label for pair in DOMAIN.sample(30, seed=1)} == set(LABELS)
    assert DOMAIN.all_indices(11) is None


def test_it_is_planned_released_certified_and_rebuilt() -> None:
    mech = mechanism("Lipschitz", domain=em.Product(em.Box([0.0], [1.0]), em.Candidates(LABELS)))
    plan = mech.plan(1.0)
    assert plan.chosen in {"BoxTree", "Rejection, uniform"}
    release = mech.release(epsilon=1.0)
    assert release.value.label in LABELS
    assert 0.0 < release.value.point[0] < 1.0
    assert all(check.holds for check in verify_certificate(release.certificate))
    rebuilt = rebuild_domain(release.certificate.domain)
    assert rebuilt.describe() == mech.domain.describe()
    text = release.certificate.to_json().replace('"kind": "Candidates"', '"kind": "Simplex"')
    assert not all(check.holds for check in verify_certificate(em.Certificate.from_json(text)))
    many = mech.sample(epsilon=200.0, size=300, sampler=em.BoxTree(), seed=1)
    assert np.mean([pair.label == "mean" for pair in many.values]) > 0.9


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: em.Product(em.Candidates(["a"]), em.Candidates(["a"])), "`box` of Product"),  # type: ignore[arg-type]
        (lambda: em.Product(em.Box([0.0], [1.0]), ["a"]), "`candidates` of Product"),  # type: ignore[arg-type]
        (
            lambda: mechanism("Lipschitz").release(epsilon=1.0, sampler=em.Rejection(em.Affine())),
            "Affine needs",
        ),
        (lambda: mechanism("Lipschitz").release(epsilon=1.0, sampler="Separable"), "needs a Box"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would_help(make: Any, match: str) -> None:
    with pytest.raises(em.ExpmechError, match=match):
        make()
