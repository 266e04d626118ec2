"""The deep α-stable kernel process of Loría & Bhadra (2025): estimator, model, groups, one draw."""
