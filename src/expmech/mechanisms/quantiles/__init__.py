"""Many quantiles at once: levels, ranks, tables and the exact draw from them."""

from expmech.mechanisms.quantiles.joint_quantiles import JointQuantiles

__all__ = ["JointQuantiles"]
