"""Every other method that the paper compares with."""
