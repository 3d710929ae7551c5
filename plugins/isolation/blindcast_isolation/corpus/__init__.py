"""The attack corpus: hostile predictors as data, and the court that tries them in a throw-away namespace (attacks.md)."""
