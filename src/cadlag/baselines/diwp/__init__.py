"""The deep inverse Wishart process of Aitchison, Yang and Ober (2021)."""
