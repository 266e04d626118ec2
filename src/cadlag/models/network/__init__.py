"""The i.i.d. stable network: f(x) = Σ_j w_j φ_j(x), w_j = τ M^(-1/α) √s_j g_j, with s_j positive α/2-stable."""
