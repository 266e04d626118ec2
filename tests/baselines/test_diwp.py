"""The face of the deep inverse Wishart process: scikit-learn's conventions, every question, files, warnings."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from cadlag import DIWPRegressor, load
from cadlag.baselines.diwp.ascent import Climb

pytestmark = pytest.mark.filterwarnings("ignore:The fit has not converged:sklearn.exceptions.ConvergenceWarning")

N = 25
RNG = np.random.default_rng(42)
X = RNG.uniform(-2.0, 2.0, (N, 2))
Y = 10.0 + 4.0 * np.tanh(X[:, 0]) + 0.3 * RNG.standard_normal(N)
NEW = RNG.uniform(-2.5, 2.5, (7, 2))
KINDS = ("observation", "function")


def regressor(**settings):
    """Too short to mean much, long enough to have learned something."""
    short = {
        "n_inducing": 8,
        "n_steps": 60,
        "learning_rates": (0.05,),
        "n_samples": 2,
        "n_atoms": 30,
        "learn_inputs": True,
    }
    return DIWPRegressor(**{**short, "random_state": 3, **settings})


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return regressor().fit(X, Y)


@parametrize_with_checks(
    [DIWPRegressor(n_inducing=10, n_steps=100, learning_rates=(0.1,), n_samples=1, n_atoms=10, learn_inputs=True)]
)
def test_scikit_learn(estimator, check):
    """All checks; none is expected to fail."""
    check(estimator)


def test_defaults_are_the_published_schedule():
    settings = DIWPRegressor().get_params()
    promised = {"n_maps": 2, "n_inducing": 100, "n_steps": 8000, "learning_rates": (1e-2, 1e-3), "n_samples": 10}
    assert promised.items() <= settings.items()
    rates = DIWPRegressor()._model(np.zeros((1, 1)), np.zeros(1)).rates
    assert len(rates) == 8000
    assert (rates[:4000] == 1e-2).all()
    assert (rates[4000:] == 1e-3).all()


def test_same_seed_same_fit(fitted):
    twin, other = regressor().fit(X, Y), regressor(random_state=4).fit(X, Y)
    np.testing.assert_array_equal(twin.predict(NEW), fitted.predict(NEW))
    np.testing.assert_array_equal(twin.sample_y(NEW, 5), fitted.sample_y(NEW, 5))
    assert np.abs(other.predict(NEW) - fitted.predict(NEW)).max() > 1e-6


def test_learning_helps():
    errors = [np.std(Y - regressor(n_steps=n, n_maps=maps).fit(X, Y).predict(X)) for n, maps in ((1, 2), (150, 2))]
    assert errors[1] < 0.5 * errors[0]
    assert errors[1] < 1.0


def test_a_row_does_not_depend_on_the_others(fitted):
    law = fitted.predict_distribution(NEW)
    for k in range(len(NEW)):
        alone = fitted.predict_distribution(NEW[k : k + 1])
        np.testing.assert_allclose(alone.means[:, 0], law.means[:, k], rtol=1e-9)
        np.testing.assert_allclose(alone.variances[:, 0], law.variances[:, k], rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_questions_agree(fitted, kind):
    law = fitted.predict_distribution(NEW, kind=kind)
    assert (len(law), law.n_atoms) == (7, 30)
    point, std = fitted.predict(NEW, return_std=True, kind=kind)
    np.testing.assert_allclose(point, law.median, rtol=1e-12)
    np.testing.assert_allclose(std, law.std, rtol=1e-12)
    np.testing.assert_allclose(fitted.predict_interval(NEW, kind=kind), law.interval(0.9), rtol=1e-12)
    alone = fitted.predict(NEW[:1], return_cov=True, kind=kind)[1]
    np.testing.assert_allclose(alone, [[std[0] ** 2]], rtol=1e-7)
    covariance = fitted.predict(NEW, return_cov=True, kind=kind)[1]
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std, rtol=0.35)
    assert np.linalg.eigvalsh(covariance).min() > -1e-10 * np.trace(covariance)
    draws = fitted.sample_y(NEW, 2000, kind=kind)
    assert draws.shape == (7, 2000)
    np.testing.assert_allclose(draws.mean(axis=1), law.mean, atol=5.0 * np.max(std) / np.sqrt(30))
    np.testing.assert_allclose(draws.std(axis=1), np.sqrt(np.diag(covariance)), rtol=0.15)


def test_observations_vary_by_the_learned_noise_more(fitted):
    (_, outer), (_, inner) = (fitted.predict(NEW, return_std=True, kind=kind) for kind in KINDS)
    np.testing.assert_allclose(outer**2 - inner**2, fitted.posterior_["noise_variance"][0, 0], rtol=1e-8)


def test_known_noise():
    model = regressor(noise_variance=0.5).fit(X, Y)
    assert "noise_variance" not in model.posterior_.draws
    (_, outer), (_, inner) = (model.predict(NEW, return_std=True, kind=kind) for kind in KINDS)
    np.testing.assert_allclose(outer**2 - inner**2, 0.5, rtol=1e-8)


@pytest.mark.parametrize(
    "settings",
    [{"n_maps": 1}, {"n_maps": 3}, {"amplitude": False}, {"learn_inputs": False}, {"pt_mode": "bayesfunc"},
     {"batch_size": 10}, {"standardize": False}, {"n_inducing": 100}, {"point": "mean"}],
    ids=str,
)  # fmt: skip
def test_variants(settings, tmp_path):
    model = regressor(n_steps=10, **settings).fit(X, Y)
    point, std = model.predict(NEW, return_std=True)
    assert np.isfinite(point).all()
    assert (std > 0.0).all()
    assert model._n_atoms() == (1 if model.n_maps == 1 else 30)
    assert model.predict(NEW, return_cov=True)[1].shape == (7, 7)
    names = set(model.posterior_.draws)
    assert ("delta" in names) == (model.n_maps > 1)
    assert ("amplitude" in names) == model.amplitude
    assert ("input_scales" in names) == model.learn_inputs
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(NEW), point)


def test_published_degrees_of_freedom_change_the_fit():
    exact, published = (regressor(pt_mode=mode).fit(X, Y).predict(NEW) for mode in ("exact", "bayesfunc"))
    assert np.abs(exact - published).max() > 1e-3


def test_files_and_pickles(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    for twin in (load(tmp_path / "model"), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(twin.predict(NEW), fitted.predict(NEW))
        np.testing.assert_array_equal(twin.sample_y(NEW, 3), fitted.sample_y(NEW, 3))
        assert twin.diagnostics_ == fitted.diagnostics_
        assert list(twin.get_params()["learning_rates"]) == [0.05]
        np.testing.assert_array_equal(twin.posterior_.stats["log_ratio"], fitted.posterior_.stats["log_ratio"])
        assert clone(twin).fit(X, Y).predict(NEW) == pytest.approx(fitted.predict(NEW), rel=1e-12)


def test_posterior_by_name(fitted):
    posterior = fitted.posterior_
    assert posterior["delta"].shape == posterior["gamma"].shape == (1, 30, 1)
    assert posterior["input_scales"].shape == (1, 30, 2)
    assert {"delta[layer 1]", "gamma[layer 1]", "noise_variance", "amplitude"} <= set(posterior.scalars())
    assert np.isnan(posterior.summary()["rhat"]).all()
    assert set(posterior.to_arviz()["posterior"].data_vars) == set(posterior.draws)
    scaled = regressor().fit(X, 7.0 * Y).posterior_
    np.testing.assert_allclose(scaled["noise_variance"], 49.0 * posterior["noise_variance"], rtol=1e-6)
    np.testing.assert_allclose(scaled["amplitude"], 7.0 * posterior["amplitude"], rtol=1e-6)


def test_data_frame():
    table = pd.DataFrame({"age": X[:, 0], "income": X[:, 1]})
    model = regressor(n_steps=5).fit(table, Y)
    assert "input_scales[income]" in model.posterior_.scalars()
    np.testing.assert_array_equal(model.predict(table), regressor(n_steps=5).fit(X, Y).predict(X))


def test_warns_while_the_bound_rises():
    with pytest.warns(ConvergenceWarning, match="still rises"):
        model = regressor(n_steps=50).fit(X, Y)
    assert model.diagnostics_["rising"]
    assert model.diagnostics_["n_steps"] == len(model.trace_) == 50
    with pytest.warns(ConvergenceWarning, match="still rises, as far as seen"):
        regressor(n_steps=3).fit(X, Y)


def test_warns_of_failed_steps(monkeypatch):
    step, seen = Climb._step, []

    def sometimes(self, *arguments):
        seen.append(0)
        return float("nan") if len(seen) % 4 == 0 else step(self, *arguments)

    monkeypatch.setattr(Climb, "_step", sometimes)
    with pytest.warns(ConvergenceWarning, match="15 of 60 steps failed"):
        assert regressor().fit(X, Y).diagnostics_["n_failures"] == 15
    monkeypatch.setattr(Climb, "_step", lambda *_: float("nan"))
    model = regressor()
    with pytest.raises(ValueError, match="every step failed"):
        model.fit(X, Y)
    assert not hasattr(model, "posterior_")


def test_interrupt_keeps_what_there_is(monkeypatch):
    step, seen = Climb._step, []

    def stop_at_once(self, *arguments):
        raise KeyboardInterrupt

    def stop(self, *arguments):
        seen.append(0)
        if len(seen) == 13:
            raise KeyboardInterrupt
        return step(self, *arguments)

    monkeypatch.setattr(Climb, "_step", stop)
    model = regressor(n_steps=20)
    with pytest.warns(UserWarning, match="interrupted after 12 steps"):
        model.fit(X, Y)
    assert np.isfinite(model.predict(NEW)).all()
    monkeypatch.setattr(Climb, "_step", stop_at_once)
    with pytest.raises(KeyboardInterrupt, match="before the first step"):
        regressor().fit(X, Y)


def test_progress_is_told():
    told = []
    regressor(n_steps=5, progress=lambda *news: told.append(news)).fit(X, Y)
    assert told[-1][:3] == ([5], 5, 0)


def test_far_rows(fitted):
    """The prior grows with the distance, and so does the answer; jointly, rows that far out cannot be told apart."""
    far = np.array([[1e6, -1e6], [1e150, 0.0], [1e150, 1e-3]])
    point, std = fitted.predict(far, return_std=True)
    assert np.isfinite(point).all()
    assert np.isfinite(std).all()
    with pytest.raises(ValueError, match="joint law of these rows is beyond rounding"):
        fitted.predict(far, return_cov=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_maps", 0), ("n_steps", 2.5), ("n_inducing", True), ("batch_size", 0), ("amplitude", "yes"), ("pt_mode", "one"),
     ("noise_variance", -1.0), ("noise_variance", [1.0, 2.0]), ("learning_rates", 0.1), ("learning_rates", [-1.0]),
     ("point", "mode")],
)  # fmt: skip
def test_settings_are_checked(name, value):
    with pytest.raises(ValueError, match=name):
        regressor(**{name: value}).fit(X, Y)


def test_memory_is_asked_before_it_is_taken():
    with pytest.raises(MemoryError, match="batch_size"):
        regressor(max_memory=1000).fit(X, Y)


@pytest.mark.parametrize(("mode", "size", "counted"), [("exact", 10, 1), ("bayesfunc", 10, 10), ("bayesfunc", None, N)])
def test_rows_that_degrees_of_freedom_count(mode, size, counted):
    assert regressor(n_steps=3, pt_mode=mode, batch_size=size).fit(X, Y).model_.counted == counted
