"""The direction along which a made-up survey of bodies varies most, released privately.

Run it with `python examples/principal_direction.py`; it needs scikit-learn (expmech[estimators]).
"""

from __future__ import annotations

import numpy as np

from expmech.estimators import PrivatePCA

COLUMNS = ["height (cm)", "weight (kg)", "resting pulse (1/min)"]
BOUNDS = [(140, 200), (40, 110), (40, 100)]  # public: what the quantities can be
CENTER = [170, 72, 68]  # public: from a census, say; never the means of the data
SCALE = [10, 12, 8]  # public too: usual deviations


def main() -> None:
    """Release one direction and its variance at epsilon = 1; print them and the certificate."""
    generator = np.random.default_rng(0)
    height = generator.normal(170, 10, 1000)
    weight = 72 + 0.9 * (height - 170) + generator.normal(0, 8, 1000)
    pulse = generator.normal(68, 8, 1000)
    table = np.column_stack([height, weight, pulse])
    model = PrivatePCA(epsilon=1.0, bounds=BOUNDS, center=CENTER, scale=SCALE).fit(table)
    for name, entry in zip(COLUMNS, model.components_[0], strict=True):
        print(f"{name:<22} {entry:+.3f}")
    print(f"{'share of the variance':<22}  {model.explained_variance_ratio_[0]:.3f}")
    print()
    print(model.certificate_)


if __name__ == "__main__":
    main()
