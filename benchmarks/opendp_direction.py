"""The first principal direction of opendp 0.16: what is drawn, beside the law it documents.

    pip install opendp[numpy]==0.16.0 scipy && python -m benchmarks.opendp_direction [--draws 500]

The documented law is the Bingham law with density ``exp(epsilon/4 u'Cu)`` on the sphere. Proposals
have a density proportional to ``(u'Wu)^(-d/2)``, so the chance to keep one must have the factor
``(u'Wu)^(d/2)``. The code divides by it. Rows are all the first axis, so that the law of ``u_1``
is an integral over one angle; it is computed here both ways, and compared with draws.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.audited_elsewhere import proposal_scale

DIMENSION, EPSILON, ROWS = 6, 8.0, 36
_COSINES = np.linspace(0.0, 1.0, 2_000_001)[1:-1]


def drawn(draws: int) -> NDArray[np.float64]:
    """Return the first coordinates of directions that opendp draws, squared."""
    import opendp.prelude as dp
    from opendp.extras.numpy import _sscp_domain
    from opendp.extras.sklearn._make_eigenvector import make_private_eigenvector

    dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")
    domain = _sscp_domain(num_features=DIMENSION, norm=1.0, p=2, size=ROWS, T=float)
    measurement: Any = make_private_eigenvector(domain, dp.symmetric_distance(), EPSILON)
    moments = np.zeros((DIMENSION, DIMENSION))
    moments[0, 0] = ROWS
    return np.array([measurement(moments)[0] ** 2 for _ in range(draws)])


def expected(sign: int) -> float:
    """Return the mean of the squared cosine where the factor has the power ``sign * d / 2``."""
    lift = EPSILON * ROWS / 4
    across = lift * (1.0 - _COSINES**2)
    powers = -DIMENSION / 2 * np.log1p(2 * across / proposal_scale(lift, DIMENSION))
    logs = (1 - sign) * powers - across + (DIMENSION - 3) / 2 * np.log1p(-(_COSINES**2))
    weights = np.exp(logs - logs.max())
    return float((weights * _COSINES**2).sum() / weights.sum())


def main() -> None:
    """Print both laws and the draws."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=500)
    squares = drawn(parser.parse_args().draws)
    error = squares.std() / np.sqrt(len(squares))
    print(f"d = {DIMENSION}, epsilon = {EPSILON:g}, {ROWS} rows along the first axis: E[u_1^2]")
    print(f"  documented law, by integration        {expected(1):.4f}")
    print(f"  with the factor divided, the same way {expected(-1):.4f}")
    print(f"  {len(squares)} draws of opendp             {squares.mean():.4f} +- {2 * error:.4f}")


if __name__ == "__main__":
    main()
