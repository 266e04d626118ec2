"""The shallow stable network by enumeration of its cells (Loría and Bhadra, 2023)."""
