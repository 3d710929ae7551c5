"""What the shell completes: names of plugins, ids of runs, files (F-10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from blindcast.cli.door import current_host
from blindcast.cli.opening import home_of

if TYPE_CHECKING:
    from blindcast.host import Host

__all__ = ["Complete", "offers", "predictors", "runs"]

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _items(words: Iterable[str], begun: str) -> list[CompletionItem]:
    return [CompletionItem(word) for word in dict.fromkeys(words) if word.startswith(begun)]


def _names(host: Host, kind: str) -> list[str]:
    return [offered.name if offered.status == "ok" else offered.qualified for offered in host.offers(kind)]


def offers(*kinds: str) -> Complete:
    """Names of the offers of some kinds; of all kinds if none is named."""

    def complete(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        from blindcast.kinds import KINDS

        with context.scope(cleanup=False):
            host = current_host()
        return _items((name for kind in kinds or KINDS for name in _names(host, kind)), begun)

    return complete


def predictors(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of predictors, and whatever files the shell finds."""
    return [*offers("predictors")(context, parameter, begun), CompletionItem(begun, type="file")]


def runs(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """`last`, ids of runs, and their 6 hex."""
    from blindcast.runs import list_runs

    found: list[Any] = [run.run_id for run in reversed(list_runs(home_of()))]
    return _items(["last", *found, *(run_id[-6:] for run_id in found)], begun)
