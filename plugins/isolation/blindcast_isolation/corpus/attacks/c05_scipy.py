"""Honest: minimise, curve_fit and a Fourier transform of SciPy, imported where they are needed; it catches warnings and logs."""

import io
import logging
import warnings

import numpy as np

LOG = logging.getLogger("forecast")
NOTES = io.StringIO()


def line(x, slope, offset):
    return slope * x + offset


class Predictor:
    def __init__(self, context):
        LOG.setLevel(logging.INFO)
        LOG.addHandler(logging.StreamHandler(NOTES))
        LOG.propagate = False
        self.weight = 0.5

    def fit(self, warmups):
        from scipy.optimize import minimize

        path = np.concatenate([warmup.y for warmup in warmups])
        found = minimize(lambda w: float(((path[1:] - w[0] * path[:-1]) ** 2).sum()), [0.1], method="Nelder-Mead")
        self.weight = float(np.tanh(found.x[0]))
        LOG.info("fitted a weight of %.3f", self.weight)

    def predict(self, view):
        import scipy.fft
        import scipy.signal
        from scipy.optimize import OptimizeWarning, curve_fit

        path = view.y
        if len(path) < 3:
            LOG.warning("too little is known at anchor %d", view.anchor)
            return None if view.anchor else 0.0
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.warn("a warning that is caught", OptimizeWarning, stacklevel=1)
            (slope, _), _ = curve_fit(line, np.arange(len(path), dtype=float), path)
        level = scipy.signal.detrend(view.ladder[view.ladder.columns[0]].to_numpy(dtype=float))
        power = float(np.abs(scipy.fft.rfft(level)).max()) / max(1, len(level))
        return float(np.tanh(self.weight * slope + power * len(caught)))
