"""Built-in losses: order-stable, with a proved error, sensitivity, growth and Lipschitz constants."""

from expmech.mechanism.losses.mean import L1Mean

__all__ = ["L1Mean"]
