"""The shallow network with sign units and stable output weights, by enumeration of its cells."""
