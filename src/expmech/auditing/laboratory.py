"""What does a chain release? Every law of a small chain, exactly, and the bounds beside it.

Theory page: docs/theory/auditing.md, section 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from expmech.auditing.chain_law import ChainLaw, lattice_point
from expmech.auditing.enumeration import law_of
from expmech.auditing.neighbours import Pair, as_json, as_pairs
from expmech.core.arrays import Array, Floats
from expmech.core.bits import seeded_bits
from expmech.core.coins import Coins
from expmech.core.errors import (
    ParameterError,
    ParameterTypeError,
    UnsupportedError,
    validate_integer,
)
from expmech.domains import Domain, Indices
from expmech.exponential.kernels import Kernel, Moves, UniformMoves
from expmech.exponential.kernels.check import transition_matrix
from expmech.exponential.mechanism import ExponentialMechanism
from expmech.exponential.samplers import Metropolis, Sampler
from expmech.exponential.samplers.chain import metropolis_move
from expmech.exponential.target import Target
from expmech.losses.base import Declared
from expmech.theory import delta_from_tv, density_distance, renyi_divergence, true_delta
from expmech.theory.divergence import log_ratio_range

MatrixOf = Callable[[Array, Floats], Any]

MOST_STATES = 1024
_MOST_STEPS = 100_000
_OWNER = "laboratory"
ORDERS = (1.01, 1.1, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0, 64.0)
_FLOATS = 1e-9  # probabilities are sums and products of floats
_K = 0.5  # the atom's share
REGENERATION = "regenerated at an atom"


@dataclass(frozen=True, kw_only=True, eq=False)
class Laboratory:
    """Exact laws of a chain on neighbouring data sets, for every number of steps.

    The function :func:`laboratory` returns it. Curves are arrays over the numbers of steps ``0 ..
    steps``, each the worst over the pairs.

    Parameters
    ----------
    epsilon : float
        What the target law f is calibrated to.
    points : ndarray
        The points of the lattice, as the loss takes them.
    pairs : list of (int, int)
        Numbers of neighbouring data sets.
    targets : ndarray of shape (data sets, points)
        The law f of each data set.
    laws : ndarray of shape (data sets, steps + 1, points)
        The law of the value after each number of steps, started uniformly.
    matrices : list of ndarray
        The transition matrix of each data set; the atom's state, if any, is the last. Empty for a
        sampler.
    joint : ndarray of shape (data sets, steps + 1, points) or None
        The probability that a value is released at a number of steps: of the sampler; of a
        regeneration of the kernel at an atom with uniform re-entry and k = 1/2; or, for a matrix
        with an atom, that a tour from the atom ends there, coming from that value.
    energies : ndarray of shape (data sets, points)
        Energies of the points in nats.
    counted : str
        What ``joint`` is of.
    draw_path : callable or None
        Runs the shipped chain for :meth:`to_arviz`.
    """

    epsilon: float
    points: Array
    pairs: list[tuple[int, int]]
    targets: Floats
    laws: Floats
    matrices: list[Floats]
    energies: Floats
    joint: Floats | None = None
    counted: str = REGENERATION
    draw_path: Callable[[int, int, int], Array] | None = None

    @property
    def steps(self) -> int:
        """The largest number of steps."""
        return int(self.laws.shape[1]) - 1

    def _worst(self, measure: Callable[[Floats, Floats], float]) -> Floats:
        """Return the largest of a measure of two laws over all ordered pairs, step by step."""
        both = [(a, b) for one, other in self.pairs for a, b in ((one, other), (other, one))]
        return np.array(
            [
                max(measure(self.laws[a, m], self.laws[b, m]) for a, b in both)
                for m in range(self.steps + 1)
            ]
        )

    @cached_property
    def exact_epsilon(self) -> Floats:
        """The pure epsilon of the value after each number of steps."""
        return self._worst(lambda p, q: max(map(abs, log_ratio_range(p, q))))

    @cached_property
    def exact_delta(self) -> Floats:
        """The least delta at ``epsilon``, the hockey-stick divergence."""
        return self.delta_at(self.epsilon)

    def delta_at(self, epsilon: float) -> Floats:
        """Return the least delta at any epsilon, for each number of steps."""
        return self._worst(lambda p, q: true_delta([(p, q)], epsilon))

    def renyi(self, order: float) -> Floats:
        """Return the Renyi divergence of an order above 1, for each number of steps."""
        return self._worst(lambda p, q: renyi_divergence(p, q, order))

    @cached_property
    def rho(self) -> Floats:
        """The zCDP parameter, ``max_a D_a / a`` over orders from 1.01 to 64."""
        return np.asarray(np.max([self.renyi(order) / order for order in ORDERS], axis=0))

    @cached_property
    def total_variation(self) -> Floats:
        """The largest distance of a data set's law from its f."""
        away = np.abs(self.laws - self.targets[:, None, :]).sum(axis=2) / 2.0
        return np.asarray(away.max(axis=0))

    @cached_property
    def density_distance(self) -> Floats:
        """The largest ``|mu_m(y) / f(y) - 1|``."""
        away = np.abs(self.laws / self.targets[:, None, :] - 1.0)
        return np.asarray(away.max(axis=(0, 2)))

    @cached_property
    def minami(self) -> Floats:
        """Minami's delta, ``(1 + e^epsilon)`` times the true total variation."""
        return np.array([delta_from_tv(self.epsilon, tv) for tv in self.total_variation])

    @cached_property
    def beta(self) -> float:
        """The largest minorisation ``P(y, .) >= beta nu`` of all data sets, nu free; 0 if none."""
        if not self.matrices:
            return 0.0
        return min(float(matrix.min(axis=0).sum()) for matrix in self.matrices)

    @cached_property
    def minorisation(self) -> Floats:
        """The delta by minorisation, ``(1 + e^epsilon) (1 - beta)^m``."""
        left = (1.0 - self.beta) ** np.arange(self.steps + 1)
        return np.array([delta_from_tv(self.epsilon, float(tv)) for tv in left])

    @cached_property
    def reversible(self) -> bool:
        """Whether every matrix is in detailed balance with its f, which the new bound needs."""
        return bool(self.matrices) and all(
            len(matrix) == len(f)
            and np.allclose(f[:, None] * matrix, (f[:, None] * matrix).T, atol=1e-12)
            for matrix, f in zip(self.matrices, self.targets, strict=True)
        )

    @cached_property
    def pure_bound(self) -> Floats:
        """The epsilon by the bound on densities; infinite where it says nothing.

        That of f, and ``log((1 + t) / (1 - t))``, t the bound of
        :func:`expmech.theory.density_distance` with p_0 = 1.
        """
        if not self.reversible or self.beta <= 0.0:
            return np.full(self.steps + 1, math.inf)
        spread = float((self.energies.max(axis=1) - self.energies.min(axis=1)).max())
        log_beta = math.log(min(1.0, self.beta)) - 1e-12
        epsilons = []
        for m in range(self.steps + 1):
            t = density_distance(log_beta, spread, m)
            epsilons.append(self.target_epsilon + 2 * math.atanh(t) if t < 1.0 else math.inf)
        return np.array(epsilons)

    @cached_property
    def target_epsilon(self) -> float:
        """The pure epsilon of f itself, on these neighbours."""
        return self._largest_log_ratio(self.targets)

    @cached_property
    def limits(self) -> Floats:
        """The law of each data set's value after very many steps: the invariant law."""
        if not self.matrices:
            return self.laws[:, -1]
        rows = [_invariant(matrix) for matrix in self.matrices]
        return np.array([_on_lattice(row, self.targets.shape[1]) for row in rows])

    @cached_property
    def limit_epsilon(self) -> float:
        """The pure epsilon of the value after very many steps."""
        return self._largest_log_ratio(self.limits)

    def _largest_log_ratio(self, laws: Floats) -> float:
        """Return the largest |log ratio| of the laws of two neighbours; one law per data set."""
        ranges = [log_ratio_range(laws[one], laws[other]) for one, other in self.pairs]
        return float(np.abs(ranges).max())

    @property
    def keeps_target(self) -> bool:
        """Whether the chain goes to f: a forgotten factor shows here."""
        allowed = 1e-6
        if not self.matrices and self.joint is not None:  # what did not end by the last step
            allowed += 2.0 * float((1.0 - self.joint.sum(axis=(1, 2))).max())
        return bool(np.abs(self.limits - self.targets).sum(axis=1).max() <= allowed)

    @cached_property
    def joint_epsilon(self) -> float:
        """The pure epsilon of value and number of steps together; nan where no count is random."""
        if self.joint is None:
            return math.nan
        return self._count_epsilon([law.ravel() for law in self.joint])

    @cached_property
    def count_epsilon(self) -> float:
        """The pure epsilon of the number of steps alone, up to ``steps``."""
        if self.joint is None:
            return math.nan
        return self._count_epsilon([law.sum(axis=1) for law in self.joint])

    def _count_epsilon(self, laws: list[Floats]) -> float:
        worst = 0.0
        for one, other in self.pairs:
            seen = np.maximum(laws[one], laws[other]) > 1e-13
            if seen.any():
                ends = log_ratio_range(laws[one][seen], laws[other][seen])
                worst = max(worst, *map(abs, ends))
        return worst

    @property
    def mean_steps(self) -> Floats:
        """The mean number of steps of each data set, of what ended by ``steps``."""
        if self.joint is None:
            return np.full(len(self.targets), math.nan)
        counts = self.joint.sum(axis=2)
        return np.asarray((counts @ np.arange(self.steps + 1)) / counts.sum(axis=1))

    def findings(self) -> list[str]:
        """Return what is wrong with the chain as a private mechanism, one sentence each."""
        sentences = []
        claimed = self.epsilon * (1.0 + _FLOATS) + _FLOATS
        if not self.keeps_target:
            sentences.append("The chain does not go to f: its acceptance lacks a factor.")
        if self.limit_epsilon > claimed:
            sentences.append(f"In the limit the value has epsilon {self.limit_epsilon:.4g}.")
        if self.exact_epsilon[-1] > claimed and self.limit_epsilon <= claimed:
            sentences.append(
                f"After {self.steps} steps the value still has epsilon"
                f" {self.exact_epsilon[-1]:.4g}, with delta {self.exact_delta[-1]:.3g} at"
                f" {self.epsilon:g}."
            )
        if self.counted != REGENERATION and self.joint_epsilon > claimed:
            sentences.append(
                "Value and number of steps together have epsilon"
                f" {self.joint_epsilon:.4g}; the number alone {self.count_epsilon:.4g}."
            )
        return sentences

    def __str__(self) -> str:
        m = self.steps
        lines = [
            f"{self.targets.shape[1]} points, {len(self.pairs)} pairs of data sets, epsilon"
            f" {self.epsilon:g} (f itself: {self.target_epsilon:.4g})",
            f"after {m} steps: epsilon {self.exact_epsilon[m]:.4g}, delta"
            f" {self.exact_delta[m]:.3g}, rho {self.rho[m]:.4g}, total variation"
            f" {self.total_variation[m]:.3g}",
            f"bounds there: Minami {self.minami[m]:.3g}, minorisation {self.minorisation[m]:.3g}"
            f" (beta {self.beta:.3g}), pure epsilon {self.pure_bound[m]:.4g}",
        ]
        if self.joint is not None:
            least, most = self.mean_steps.min(), self.mean_steps.max()
            lines.append(
                f"{self.counted}: mean steps {least:.4g} to {most:.4g}; value and number together"
                f" epsilon {self.joint_epsilon:.4g}, the number alone {self.count_epsilon:.4g}"
            )
        return "\n".join([*lines, *(f"! {text}" for text in self.findings())])

    def to_dict(self) -> dict[str, Any]:
        """Return the curves as arrays by name, with the number of steps as the first."""
        return {
            "steps": np.arange(self.steps + 1),
            "epsilon": self.exact_epsilon,
            "delta": self.exact_delta,
            "rho": self.rho,
            "total_variation": self.total_variation,
            "minami_delta": self.minami,
            "minorisation_delta": self.minorisation,
            "pure_bound": self.pure_bound,
        }

    def to_frame(self) -> Any:
        """Return the curves as a data frame of pandas, one row per number of steps."""
        import pandas as pd

        return pd.DataFrame(self.to_dict()).set_index("steps")

    def to_arviz(self, *, data: int = 0, chains: int = 4, seed: int = 0) -> Any:
        """Run the shipped chain and return its path as an InferenceData of ArviZ.

        Parameters
        ----------
        data : int, default 0
            Number of the data set, as in ``pairs``: the first of the first pair is 0.
        chains : int, default 4
            Independent copies.
        seed : int, default 0
            Seed of the random bits: these are draws for a study, never a release.

        Raises
        ------
        UnsupportedError
            For a chain that is given as a matrix, or a sampler.
        """
        import arviz as az

        if self.draw_path is None:
            raise UnsupportedError(
                "to_arviz needs a kernel of the library; this chain has no code."
            )
        return az.from_dict(posterior={"y": self.draw_path(data, chains, seed)})

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw total variation, deltas and the pure epsilon against the number of steps.

        Parameters
        ----------
        path : str or Path, optional
            A file for the picture, by its ending; None only returns the figure.

        Returns
        -------
        matplotlib.figure.Figure
            Two panels.
        """
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9.0, 3.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        m, least = np.arange(self.steps + 1), 1e-16
        truth = "delta, true (hockey stick)" + (": 0" if self.exact_delta.max() == 0.0 else "")
        for curve, label, colour, style in (
            (self.total_variation, "total variation, true", "#0072B2", "-"),
            (self.exact_delta, truth, "#000000", "-"),
            (self.minami, "delta, Minami by true TV", "#E69F00", "--"),
            (self.minorisation, "delta, minorisation", "#D55E00", ":"),
        ):
            shown = np.where(curve > least, curve, np.nan)
            left.semilogy(m, shown, style, color=colour, label=label)
        left.set(xlabel="steps m", ylabel=f"at epsilon = {self.epsilon:g}", ylim=(least, 3.0))
        right.plot(m, self.exact_epsilon, color="#000000", label="epsilon, true")
        right.plot(m, self.pure_bound, "--", color="#009E73", label="epsilon, bound on densities")
        right.axhline(self.epsilon, color="#999999", linewidth=0.8, label="epsilon claimed")
        top = 1.6 * max(self.epsilon, float(np.min(self.exact_epsilon)))
        right.set(xlabel="steps m", ylabel="pure epsilon (nats)", ylim=(0.0, top))
        for axes in (left, right):
            axes.legend(fontsize=8, frameon=False)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure


def laboratory(
    kernel: Kernel | Sampler | MatrixOf,
    loss: Callable[[Any], Any],
    domain: Domain,
    neighbours: Sequence[Pair | tuple[Any, Any]],
    *,
    epsilon: float,
    steps: int = 100,
    follow_coins: bool = False,
    **declared: Unpack[Declared],
) -> Laboratory:
    """Return the exact laws of any chain with any loss on a small lattice, for every step.

    Parameters
    ----------
    kernel : Kernel, Sampler or callable
        Moves, accepted by Metropolis-Hastings; or a sampler that stops by itself, such as
        ``em.ConfAtomPerfect()``; or a function of your own, (points, energies in nats) ->
        transition matrix. One more state than points is an atom, the last.
    loss : callable
        Maps a data set to its loss, such as ``em.losses.L1Mean``.
    domain : Domain
        Its lattice has at most 1024 points; for a sampler, or with ``follow_coins``, only a few.
    neighbours : sequence of Pair or of (first, second)
        Pairs of neighbouring data sets.
    epsilon : float
        What f is calibrated to, and what deltas are computed at.
    steps : int, default 100
        The largest number of steps; that of a ``Metropolis`` sampler is its own.
    follow_coins : bool, default False
        Enumerate every coin of the shipped step, in the place of the masses that a kernel states.
    **declared
        What is known of the loss, as in :class:`~expmech.ExponentialMechanism`: ``sensitivity`` for
        a loss of your own.

    Returns
    -------
    Laboratory
        Laws, curves and bounds, with :meth:`~Laboratory.findings` and :meth:`~Laboratory.plot`.

    Notes
    -----
    Kernels are not checked beforehand: finding out is what this is for.

    Examples
    --------
    >>> import expmech as em
    >>> box = em.Box([0.0], [1.0], bits=4)
    >>> pairs = [([0.0, 0.0, 0.5], [0.0, 1.0, 0.5])]
    >>> lab = laboratory(em.kernels.UniformMoves(), em.losses.L1Mean, box, pairs, epsilon=1.0)
    >>> lab.keeps_target, bool(lab.exact_epsilon[-1] <= 1.0), lab.findings()
    (True, True, [])
    """
    steps = validate_integer(steps, name="steps", owner=_OWNER, low=1, high=_MOST_STEPS)
    if not neighbours:
        raise ParameterError("`neighbours` of laboratory must be at least one pair.")
    data: list[Any] = []
    numbers: dict[str, int] = {}  # each data set once, though it may be in several pairs
    pairs = []
    for pair in as_pairs(neighbours):
        both = []
        for rows in (pair.first, pair.second):
            number = numbers.setdefault(repr(as_json(rows)), len(data))
            if number == len(data):
                data.append(rows)
            both.append(number)
        pairs.append((both[0], both[1]))
    mechanisms = [ExponentialMechanism(loss=loss(rows), domain=domain, **declared) for rows in data]
    targets = [mechanism.target(epsilon=epsilon) for mechanism in mechanisms]
    points = _points(targets[0])
    energies = np.array([target.energy(points) / target.units_per_nat for target in targets])
    weights = np.exp(energies.min(axis=1)[:, None] - energies)
    base = {
        "epsilon": float(epsilon),
        "points": targets[0].domain.points(points),
        "pairs": pairs,
        "targets": weights / weights.sum(axis=1)[:, None],
        "energies": energies,
    }
    if isinstance(kernel, Metropolis):
        steps = kernel.steps or kernel.terms(targets[0]).parameters["steps"]
        kernel = kernel.kernel
    joint: Floats | None
    if isinstance(kernel, Sampler):
        joint = np.array([_joint_law(each, kernel, epsilon, points, steps) for each in mechanisms])
        return Laboratory(
            **base, laws=_released(joint), matrices=[], joint=joint, counted=kernel.label
        )
    if isinstance(kernel, Kernel):
        moves = [kernel.bind(target) for target in targets]
        step_law = _enumerated_step if follow_coins else transition_matrix
        matrices = [
            _stay(step_law(own, target, points)) for own, target in zip(moves, targets, strict=True)
        ]
        joint = np.array(
            [
                regeneration(matrix, nats, steps, target.minimum_energy / target.units_per_nat)
                for matrix, nats, target in zip(matrices, energies, targets, strict=True)
            ]
        )

        def path(number: int, chains: int, seed: int) -> Array:
            return _path(moves[number], targets[number], chains, steps, seed)

        laws = np.array([_laws(matrix, len(points), steps) for matrix in matrices])
        return Laboratory(**base, laws=laws, matrices=matrices, joint=joint, draw_path=path)
    if not callable(kernel):
        raise ParameterTypeError(
            "`kernel` of laboratory must be a kernel, a sampler, or a function of points and"
            f" energies that returns a transition matrix; got {kernel!r}."
        )
    matrices = [_validate_matrix(kernel(base["points"], nats), len(points)) for nats in energies]
    laws = np.array([_laws(matrix, len(points), steps) for matrix in matrices])
    tours = [_tours(matrix, steps) for matrix in matrices] if len(matrices[0]) > len(points) else []
    joint = np.array(tours) if tours else None
    counted = "tours from the atom" if tours else REGENERATION
    return Laboratory(**base, laws=laws, matrices=matrices, joint=joint, counted=counted)


def _points(target: Target) -> Indices:
    points = target.all_indices(MOST_STATES)
    if points is None:
        raise UnsupportedError(
            f"laboratory takes lattices of at most {MOST_STATES} points; this domain has more. Use"
            " fewer bits."
        )
    return points


def _stay(moves: Floats) -> Floats:
    """Return a matrix whose rows sum to one: what is refused stays."""
    whole = moves.copy()
    np.fill_diagonal(whole, 0.0)
    np.fill_diagonal(whole, np.maximum(0.0, 1.0 - whole.sum(axis=1)))
    return whole


def _enumerated_step(moves: Moves, target: Target, points: Indices) -> Floats:
    """Return the probabilities of accepted moves by every path of the shipped code's coins."""
    numbers = {tuple(point): j for j, point in enumerate(points.tolist())}
    step_law = np.zeros((len(points), len(points)))
    for j, point in enumerate(points):
        at = np.ascontiguousarray(point[None, :])

        def step(coins: Coins, at: Indices = at) -> tuple[int, ...]:
            after, _ = metropolis_move(target, at, target.energy(at), coins, moves)
            return tuple(after[0].tolist())

        for reached, probability in law_of(step, cut=1e-13)[0].items():
            step_law[j, numbers[reached]] += probability  # type: ignore[index]
    return step_law


def _validate_matrix(matrix: Any, points: int) -> Floats:
    """Return a caller's matrix; raise unless it is a transition matrix."""
    transitions = np.asarray(matrix, dtype=np.float64)
    square = transitions.ndim == 2 and transitions.shape[0] == transitions.shape[1]
    if (
        not square
        or len(transitions) not in (points, points + 1)
        or not np.isfinite(transitions).all()
        or transitions.min() < -_FLOATS
        or np.abs(transitions.sum(axis=1) - 1.0).max() > 1e-6
    ):
        raise ParameterError(
            "`kernel` of laboratory must return a transition matrix: one row and one column per"
            f" point, and one more for an atom, not negative, rows that sum to 1; got shape"
            f" {transitions.shape}."
        )
    whole: Floats = np.maximum(transitions, 0.0)
    return np.asarray(whole / whole.sum(axis=1)[:, None])


def _invariant(matrix: Floats) -> Floats:
    """Return a law that is invariant under the matrix."""
    balance = matrix.T - np.eye(len(matrix))
    balance[-1] = 1.0  # the sum of the law, in the place of an equation that follows from the rest
    last = np.zeros(len(matrix))
    last[-1] = 1.0
    law = np.linalg.lstsq(balance, last, rcond=None)[0]
    return np.asarray(np.maximum(law, 0.0))


def _on_lattice(law: Floats, points: int) -> Floats:
    """Return a law without the atom's mass."""
    return np.asarray(law[:points] / law[:points].sum())


def _laws(matrix: Floats, points: int, steps: int) -> Floats:
    """Return the law of the value after 0 .. steps steps from a uniform start on the lattice."""
    now = np.zeros(len(matrix))
    now[:points] = 1.0 / points
    laws = [_on_lattice(now, points)]
    for _ in range(steps):
        now = now @ matrix
        laws.append(_on_lattice(now, points))
    return np.array(laws)


def regeneration(matrix: Floats, energies: Floats, steps: int, minimum: float) -> Floats:
    """Return P(released at step m, value y) of ConfAtomPerfect about a kernel K that is a matrix.

    Uniform re-entry and k = 1/2: ``W = log(Z_f / |Y|)``, and the offset is minus the declared
    minimum of the energies. Facts: docs/theory/conf_atom_perfect.md.
    """
    count = len(matrix)
    least = energies.min()
    weight = -least + math.log(np.exp(least - energies).mean() * _K / (1.0 - _K))
    excess = weight + energies  # s(y) = W - R + E with R = 0
    tag = math.exp(-max(0.0, -minimum - weight)) / 2.0
    there, back = np.exp(np.minimum(0.0, excess)), np.exp(np.minimum(0.0, -excess))
    at, atom = np.zeros(count), 1.0
    released = np.zeros((steps + 1, count))
    for m in range(1, steps + 1):
        released[m] = tag * at
        to_atom = float(at @ (there / 2.0 - tag))
        entered = atom * back / (2.0 * count)
        # a tag at the atom is a restart, which is where the chain is
        at = at * (1.0 - there) / 2.0 + (at @ matrix) / 2.0 + entered
        atom = atom - float(entered.sum()) + to_atom
    return released


def _tours(matrix: Floats, steps: int) -> Floats:
    """Return P(the chain is back at its atom after m steps, coming from y), started at the atom."""
    inner, into = matrix[:-1, :-1], matrix[:-1, -1]
    now, returned = matrix[-1, :-1].copy(), np.zeros((steps + 1, len(inner)))
    for m in range(2, steps + 1):
        returned[m] = now * into
        now = now @ inner
    return returned


def _joint_law(
    mechanism: ExponentialMechanism, sampler: Sampler, epsilon: float, points: Indices, steps: int
) -> Floats:
    """Return P(value, number of steps) of a sampler, by enumeration of its shipped step."""
    chain = mechanism.chain(epsilon=Fraction(str(epsilon)), sampler=sampler)
    law = ChainLaw(chain, lattice_point, leftover=1e-12, cut=1e-13, most_steps=steps)
    numbers = {tuple(point): j for j, point in enumerate(points.tolist())}
    joint = np.zeros((steps + 1, len(points)))
    for m, ended in enumerate(law.by_step, start=1):
        for reached, probability in ended.items():
            joint[m, numbers[reached]] += probability  # type: ignore[index]
    return joint


def _released(joint: Floats) -> Floats:
    """Return the law of the value among what ended by each step, uniform before anything did."""
    ended = joint.cumsum(axis=1)
    totals = ended.sum(axis=2, keepdims=True)
    uniform = np.full_like(ended, 1.0 / ended.shape[2])
    return np.asarray(np.where(totals > 0.0, ended / np.maximum(totals, 1e-300), uniform))


def _path(moves: Moves, target: Target, chains: int, steps: int, seed: int) -> Array:
    """Run copies of the shipped step from a uniform start; return (chains, steps, coordinates)."""
    coins = Coins(seeded_bits([seed, chains]))
    indices = UniformMoves().propose(target.domain, coins, np.zeros((chains, 1), dtype=np.int64))
    energies, values = target.energy(indices), []
    for _ in range(steps):
        indices, energies = metropolis_move(target, indices, energies, coins, moves)
        values.append(target.domain.values(indices))
    return np.stack(values, axis=1)
