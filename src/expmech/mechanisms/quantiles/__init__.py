"""Several quantiles of one column: one joint draw, or medians of parts."""

from expmech.mechanisms.quantiles.joint_quantiles import JointQuantiles
from expmech.mechanisms.quantiles.recursive_quantiles import RecursiveQuantiles

__all__ = ["JointQuantiles", "RecursiveQuantiles"]
