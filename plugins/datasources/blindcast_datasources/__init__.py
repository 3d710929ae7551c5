"""Data sources: pools, importers, the synthetic market, and the `data` commands."""

from collections.abc import Iterable

from blindcast.hookspecs import Offer, hookimpl


@hookimpl
def datasources() -> Iterable[Offer]:
    """Pools on disk, the invented market, and the importers that make pools."""
    yield Offer("orderbook", "blindcast_datasources.orderbook:OrderBook", "windows of a recorded pool")
    yield Offer("synthetic", "blindcast_datasources.synthetic:Synthetic", "an invented market with a known edge")
    yield Offer("lake", "blindcast_datasources.lake:Lake", "wide parquet of book and trades", protocol="Importer")
    yield Offer("binance", "blindcast_datasources.binance:Binance", "raw recordings, snapshot spliced with diffs", protocol="Importer")


@hookimpl
def commands() -> Iterable[Offer]:
    """The `data` group."""
    yield Offer("data", "blindcast_datasources.data_group:data", "import and describe pools")
