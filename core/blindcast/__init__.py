"""blindcast: a court for forecasts. Importing it loads the plugin vocabulary and nothing heavy."""

from blindcast.hookspecs import API, Offer, hookimpl, hookspec

__all__ = ["API", "Offer", "__version__", "hookimpl", "hookspec"]

__version__ = "0.1.0"
