"""Honest: half at every anchor, for every horizon; nothing else is defined."""


class Predictor:
    def predict(self, view):
        return 0.5
