"""Honest: pandas rolling means and group-bys on the ladder and the events, against copies it keeps of earlier windows."""

import numpy as np
import pandas as pd


class Predictor:
    def __init__(self, context):
        self.columns = list(context.columns)
        self.steps = context.grid.steps
        self.kept = []

    def observe(self, view):
        if view.anchor == self.steps - 1:
            self.kept.append(view.ladder.copy())

    def usual(self, ladder):
        """What the columns' rolling means were at the end of the windows that are kept."""
        if not self.kept:
            return ladder.mean()
        ends = [kept.rolling(5, min_periods=1).mean().iloc[-1] for kept in self.kept]
        return pd.concat(ends, axis=1).mean(axis=1)

    def predict(self, view):
        ladder, events = view.ladder, view.events
        if ladder.empty:
            return 0.0
        recent = ladder.rolling(5, min_periods=1).mean().iloc[-1]
        lean = float((recent - self.usual(ladder)).sum())
        flow = events.groupby(np.sign(events["value"]))["value"].agg(["count", "mean"])
        drawn = events.assign(bucket=np.arange(len(events)) // 4).groupby("bucket")["value"].sum().ewm(span=3).mean()
        lean += float((flow["count"] * flow["mean"]).sum()) / len(events) + float(drawn.iloc[-1])
        return pd.Series(np.tanh(lean) / np.sqrt(view.horizons - view.anchor), index=view.horizons)
