"""The paper's figures and claims, reproduced and corrected: studies that call the library, tabulate and plot."""
