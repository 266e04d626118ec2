"""Chains in rounds until their predictions are precise: what comes next, and that nothing but counts decides it."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from cadlag import StableKernelRegressor, StableNetworkRegressor, inference, load
from cadlag.inference import MOST_CHAINS, Reach, Rounds
from cadlag.kernel_process import estimator as kernel_estimator
from cadlag.network import estimator
from cadlag.sampling.contract import InterruptedFitWarning
from cadlag.trust import Trust

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(4)
X = RNG.uniform(-1.0, 1.0, (14, 2))
Y = 2.0 * (X[:, 0] > 0.1) + 0.3 * RNG.standard_normal(14)
NEW = RNG.uniform(-1.0, 1.0, (5, 2))


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Rounds that begin small."""
    monkeypatch.setattr(estimator, "FIRST_OF_FEW", Reach(8, 10, 6))


def network(**options):
    return StableNetworkRegressor(**{"n_units": 3, "bulk": False, "random_state": 5, **options})


@pytest.fixture(scope="module")
def wide():
    """A fit that took several rounds."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(estimator, "FIRST_OF_FEW", Reach(8, 10, 6))
        warnings.simplefilter("ignore", ConvergenceWarning)
        return network(precision=0.02).fit(X, Y)


def same(a, b):
    np.testing.assert_array_equal(a.posterior_.positions, b.posterior_.positions)
    np.testing.assert_array_equal(a.predict(NEW), b.predict(NEW))
    assert a.reproducibility_ == b.reproducibility_
    assert a.diagnostics_ == b.diagnostics_


# What comes next -----------------------------------------------------------------------------------------------------


def rounds(**options):
    return Rounds("nuts", 8, 10, 6, **{"precision": 0.2, **options})


def trust(reproducibility, drifting=False, excess=1.0, enough=False, n_effective=100.0):
    return Trust(reproducibility, drifting, excess, 500.0 if enough else n_effective, 8)


HERE = Reach(8, 10, 6)


@pytest.mark.parametrize(
    ("found", "following"),
    [
        (trust(0.1, excess=-0.01, enough=True), None),
        (trust(0.1, excess=-0.01), Reach(8, 10, 12)),
        (trust(0.1, excess=-0.01, n_effective=360.0), Reach(8, 10, 8)),
        (trust(0.1, excess=0.04), Reach(8, 10, 12)),
        (trust(0.3, excess=-0.01, enough=True), Reach(8, 10, 12)),
        (trust(0.3, excess=0.04), Reach(12, 10, 6)),
        (trust(0.1), None),
        (trust(0.3), Reach(12, 10, 6)),
        (trust(float("nan")), Reach(12, 10, 6)),
        (trust(float("nan"), excess=0.2), Reach(8, 10, 12)),
        (trust(0.1, excess=0.2), None),
        (trust(0.1, drifting=True), Reach(8, 20, 6)),
        (trust(0.1, drifting=True, excess=0.04), Reach(8, 10, 12)),
        (trust(0.1, drifting=True, excess=-0.01, enough=True), None),
    ],
)
def test_what_the_next_round_reaches(found, following):
    assert rounds()._next(HERE, found) == following


def test_kernels_that_learn_go_on_learning_where_few_draws_are_effective():
    few, more = trust(float("nan"), excess=-0.01, n_effective=7.0), trust(float("nan"), excess=-0.01, n_effective=8.0)
    assert rounds(relearns=True)._next(HERE, few) == Reach(8, 20, 6)
    assert rounds(relearns=True)._next(HERE, more) == rounds()._next(HERE, few) == Reach(8, 10, 12)
    assert rounds(relearns=True)._next(Reach(8, 40, 6), few) == Reach(8, 40, 12)
    assert rounds(relearns=True)._next(Reach(8, 10, 14), few) == Reach(8, 30, 14)  # beyond what there is
    assert rounds(relearns=True)._learning(Reach(8, 40, 6)) == 40 and rounds()._learning(Reach(8, 40, 6)) == 10


def test_what_is_given_does_not_grow():
    assert rounds(free=frozenset(("n_draws",)))._next(HERE, trust(0.3)) is None
    assert rounds(free=frozenset(("n_chains",)))._next(HERE, trust(0.1, drifting=True)) is None
    assert rounds(free=frozenset(("n_chains",)))._next(HERE, trust(0.3, excess=-0.01)) == Reach(12, 10, 6)


def test_growth_ends():
    reach, seen = HERE, []
    while reach is not None:
        seen.append(reach)
        reach = rounds()._next(reach, trust(0.9))
    assert [r.n_chains for r in seen] == [8, 12, 20, 32, 48] and seen[-1].n_chains <= MOST_CHAINS
    reach, seen = HERE, []
    while reach is not None:
        seen.append(reach)
        reach = rounds()._next(reach, trust(0.9, drifting=True))
    assert [r.n_dropped for r in seen] == [10, 20, 40]


def test_a_round_that_learns_does_so_and_ends(monkeypatch):
    """More draws than were dropped: proposals are fitted to them, and nothing adapts in those that are kept."""
    monkeypatch.setattr(kernel_estimator, "FIRST", Reach(4, 80, 120))
    monkeypatch.setattr(kernel_estimator, "LEARNED", 1)
    monkeypatch.setattr(inference, "FEW", 0.9)
    monkeypatch.setattr(inference, "MOST_WARMUP", 3.2)  # one such round, to 250, or else one to 160 and none to 320
    settings = {"precision": 0.05, "random_state": 3}
    first = StableKernelRegressor(**settings, max_seconds=1e-9).fit(X, Y)
    fit = StableKernelRegressor(**settings).fit(X, Y)
    assert fit.chains_[0]["done"] - fit.posterior_.n_draws >= 250
    learned = [model.chains_[0]["kernel"]["mixture"]["means"] for model in (first, fit)]
    assert learned[0].shape != learned[1].shape or not np.allclose(*learned)
    for model in (first, fit):
        assert (np.ptp(model.posterior_.stats["step_size"], axis=1) == 0.0).all()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_fit_that_learned_twice_is_one_that_was_saved_between(n_jobs, tmp_path, monkeypatch):
    """Draws are those of a fit that stopped after its first round, was saved, and went on."""
    monkeypatch.setattr(kernel_estimator, "FIRST", Reach(4, 80, 30))
    monkeypatch.setattr(kernel_estimator, "LEARNED", 1)
    monkeypatch.setattr(inference, "FEW", 0.9)  # no chain is as good
    settings = {"precision": 0.05, "random_state": 3, "n_jobs": n_jobs}
    at_once = StableKernelRegressor(**settings).fit(X, Y)
    assert at_once.chains_[0]["done"] - at_once.posterior_.n_draws > 80
    first = StableKernelRegressor(**settings, max_seconds=1e-9).fit(X, Y)
    assert first.posterior_.n_draws == 30
    first.save(tmp_path / "first.cadlag")
    gone_on = load(tmp_path / "first.cadlag")
    gone_on.set_params(max_seconds=None)
    gone_on.extend(precision=0.05)
    np.testing.assert_array_equal(gone_on.posterior_.positions, at_once.posterior_.positions)


# Fits ----------------------------------------------------------------------------------------------------------------


def test_a_fit_that_took_several_rounds(wide):
    assert wide.posterior_.n_chains > 8 or wide.posterior_.n_draws > 6 or wide.chains_[0]["done"] > 16
    assert wide.diagnostics_["reproducibility"] == wide.reproducibility_ > 0.0
    assert wide.diagnostics_["verdict"] in ("posterior", "ensemble", "unfinished")
    assert wide.n_chains == "auto"  # a setting stays as it was given


def test_new_chains_are_none_of_the_old():
    model = network(n_draws=6, n_warmup=10, precision=0.001).fit(X, Y)
    first = model.posterior_.positions[:, 0]
    assert len(first) == MOST_CHAINS == len(np.unique(first, axis=0))


def test_draws_depend_neither_on_workers_nor_on_blocks(wide, monkeypatch):
    monkeypatch.setattr("cadlag.sampling.chains._BLOCK_SECONDS", 1e-9)
    same(network(precision=0.02, n_jobs=2).fit(X, Y), wide)


def test_rounds_begin_with_the_draws_of_numbers():
    """The first round is the fit whose numbers are given."""
    first = network(max_seconds=1e-9, precision=0.001).fit(X, Y)
    given = network(n_chains=8, n_warmup=10, n_draws=6).fit(X, Y)
    np.testing.assert_array_equal(first.posterior_.positions, given.posterior_.positions)
    assert first.reproducibility_ == given.reproducibility_


def test_a_precise_fit_is_that_of_a_less_precise_one_gone_on_with(wide):
    model = network(precision=0.9).fit(X, Y)
    assert len(model.posterior_.positions) <= len(wide.posterior_.positions)
    before = model.posterior_.positions.shape
    model.extend(precision=0.02)
    assert model.posterior_.positions.shape != before
    same(model.set_params(precision=0.02).name_inputs(["a", "b"]), wide.name_inputs(["a", "b"]))


def test_going_on_from_a_file(wide, tmp_path):
    model = network(precision=0.9).fit(X, Y)
    model.save(tmp_path / "m.cadlag")
    again = load(tmp_path / "m.cadlag")
    same(again, model)
    np.testing.assert_array_equal(
        again.extend(precision=0.02).posterior_.positions, model.extend(precision=0.02).posterior_.positions
    )


def test_precision_is_that_of_the_draws_that_predict():
    """Fewer atoms predict less precisely, however many draws there are."""
    counts = {"n_chains": 8, "n_warmup": 20, "n_draws": 400}
    fine, coarse = (network(n_atoms=n, **counts).fit(X, Y).reproducibility_ for n in (3200, 160))
    assert coarse > 1.5 * fine


def test_extend_by_draws_after_rounds(wide):
    model = network(precision=0.02).fit(X, Y)
    n_draws = model.posterior_.n_draws
    model.extend(5)
    assert model.posterior_.positions.shape[:2] == (wide.posterior_.n_chains, n_draws + 5)
    np.testing.assert_array_equal(model.posterior_.positions[:, :n_draws], wide.posterior_.positions)


def test_a_checkpoint_resumes_rounds(wide, tmp_path):
    """Whatever was lost of it: the last blocks of some chains, or whole chains of a later round."""
    network(precision=0.02).fit(X, Y, checkpoint=tmp_path / "run")
    for lost in ("chain-0000-*", f"chain-{wide.posterior_.n_chains - 1:04d}-*"):
        files = sorted((tmp_path / "run").glob(lost))
        files[-1].unlink()
        same(network(precision=0.02).fit(X, Y, checkpoint=tmp_path / "run"), wide)


class Interrupt:
    """Ctrl-C once so many rounds have been told of."""

    def __init__(self, n_rounds):
        self.left = n_rounds

    def __call__(self, reached, total, divergences, seconds):
        if not self.left:
            raise KeyboardInterrupt

    def say(self, text):
        self.left -= 1


def test_ctrl_c_in_a_later_round_keeps_the_round_before():
    with pytest.warns(InterruptedFitWarning, match="last whole round"):
        model = network(precision=0.001, progress=Interrupt(1)).fit(X, Y)
    assert model.posterior_.positions.shape[:2] == (8, 6)
    assert model.diagnostics_["verdict"] == "unfinished"


def test_rounds_are_told_of_in_words():
    heard = []

    class Listener:
        def __call__(self, *numbers):
            pass

        def say(self, text):
            heard.append(text)

    network(precision=0.02, progress=Listener()).fit(X, Y)
    assert heard and all(text.startswith("precision") for text in heard)


def test_chains_of_the_kernel_process_meet_in_fours(monkeypatch):
    monkeypatch.setattr("cadlag.kernel_process.estimator.FIRST", Reach(4, 90, 6))
    model = StableKernelRegressor(random_state=2, precision=0.05, n_draws=6, n_warmup=90).fit(X, Y)
    alone = StableKernelRegressor(random_state=2, n_chains=4, n_draws=6, n_warmup=90).fit(X, Y)
    assert model.posterior_.n_chains > 4
    np.testing.assert_array_equal(model.posterior_.positions[:4], alone.posterior_.positions)


# Refusals and first looks --------------------------------------------------------------------------------------------


def test_precision_belongs_to_auto():
    given = network(n_chains=8, n_warmup=10, n_draws=6).fit(X, Y)
    with pytest.raises(ValueError, match='"auto"'):
        given.extend(precision=0.1)
    with pytest.raises(ValueError, match="both"):
        network(precision=0.9).fit(X, Y).extend(3, precision=0.1)
    with pytest.raises(ValueError, match="precision must be a number in"):
        network(precision=1.5).fit(X, Y)


@pytest.mark.parametrize("make", [network, StableKernelRegressor])
def test_a_first_look_says_what_it_is(make, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = make(inference="fast", random_state=1).fit(X, Y)
    assert model.diagnostics_["verdict"] == "fast"
    assert np.isnan(model.reproducibility_)
    model.save(tmp_path / "fast.cadlag")
    same_again = load(tmp_path / "fast.cadlag")
    np.testing.assert_array_equal(same_again.predict(NEW), model.predict(NEW))
    assert same_again.diagnostics_["verdict"] == "fast"
    with pytest.raises(ValueError, match="leave the checkpoint out"):
        make(inference="fast").fit(X, Y, checkpoint=tmp_path / "run")


def test_a_first_look_has_no_chains_to_go_on_with_where_nothing_was_sampled():
    with pytest.raises(ValueError, match='inference="fast" has no chains'):
        StableKernelRegressor(inference="fast", random_state=1).fit(X, Y).extend(3)
