"""Several quantiles of one column: one joint draw, or medians of parts."""

from typing import TYPE_CHECKING

from expmech.core.on_demand import names_on_demand

if TYPE_CHECKING:
    from expmech.mechanisms.quantiles.joint_quantiles import JointQuantiles
    from expmech.mechanisms.quantiles.recursive_quantiles import RecursiveQuantiles

__all__ = ["JointQuantiles", "RecursiveQuantiles"]

__getattr__, __dir__ = names_on_demand(
    __name__,
    {
        "joint_quantiles": "JointQuantiles",
        "recursive_quantiles": "RecursiveQuantiles",
    },
)
