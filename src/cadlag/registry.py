"""name -> (module, class): every method once; nothing is imported before it is wanted."""

REGRESSORS = {
    "kernel": ("cadlag.kernel_process.estimator", "StableKernelRegressor"),
    "network": ("cadlag.network.estimator", "StableNetworkRegressor"),
    "nngp": ("cadlag.baselines.nngp.estimator", "NNGPRegressor"),
    "ml_gp": ("cadlag.baselines.ml_gp.estimator", "MLGPRegressor"),
    "bayes_gp": ("cadlag.baselines.bayes_gp.estimator", "BayesGPRegressor"),
    "shallow_stable": ("cadlag.baselines.shallow_stable.estimator", "ShallowStableRegressor"),
    "diwp": ("cadlag.baselines.diwp.estimator", "DIWPRegressor"),
}

# What else one would take, which `cadlag.compare` knows how to ask.
RIVALS = ("sklearn_gp", "random_forest", "boosting", "bart")
