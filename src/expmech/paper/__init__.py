"""The paper's figures and claims, reproduced and corrected.

Studies that call the library, tabulate and plot.
"""
