"""The paper's algorithms as printed, for studies only.

They draw from a seeded stream and can be audited by enumeration. They are not samplers of the
library: they have no ``prepare``, so no release, certificate or plan accepts them.
"""
