"""Predictors, good and bad, in real children of each backend."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from blindcast.errors import DeniedError
from blindcast.local import LocalSeat
from blindcast.records import Grid, Limits, Policy, SpawnSpec
from blindcast.reveal import Reveal
from blindcast.view import Context
from blindcast.walk import Walker
from blindcast_isolation.backend import Backend
from blindcast_isolation.hook import WARNING, Hook
from blindcast_isolation.privdrop import PrivDrop

Go = Callable[..., Any]

HONEST = """
import numpy as np

class Predictor:
    def __init__(self, context):
        self.context = context
        self.seen = 0

    def fit(self, warmups):
        self.scale = float(np.mean([abs(w.ladder["bid"]).sum() for w in warmups]))

    def observe(self, view):
        self.seen += len(view.ladder) + len(view.events)

    def predict(self, view):
        if view.anchor == 2:
            return None
        lean = np.tanh(view.ladder["bid"].to_numpy(dtype=float).sum() / (1 + self.seen + self.scale))
        return lean * np.linspace(1, 0.5, len(view.horizons))
"""


def body(*lines: str, at: str = "predict(self, view)") -> str:
    """A predictor whose one method holds `lines`."""
    return "import os, sys, time\nclass Predictor:\n" + (
        f"    def {at}:\n"
        + "".join(f"        {line}\n" for line in lines)
        + ("" if "predict" in at else "    def predict(self, view): return 0.5\n")
    )


def test_a_child_gives_the_curves_and_links_of_a_seat_in_this_process(backend: Backend, walk: Go) -> None:
    """I-33, PF: isolation changes nothing."""
    space: dict[str, Any] = {}
    exec(HONEST, space)
    from_child = walk(backend, HONEST)
    reveals = [_again(seed) for seed in (0, 1)]
    context = Context(Grid(60, 4), 1.0, ("bid", "ask", "weight"), 7)
    seat = LocalSeat(space["Predictor"], context, [_again(100)])
    local = list(Walker(lambda: seat, lambda *_: None, 4).walk(seat, reveals))
    assert from_child.broken is None
    assert [w.head for w in from_child.walked] == [w.head for w in local]
    assert all(np.array_equal(a.curves, b.curves) for a, b in zip(from_child.walked, local, strict=True))
    assert from_child.walked[0].curves.any()


def _again(seed: int) -> Reveal:
    from blindcast.records import Blinded
    from blindcast.reveal import ready

    random = np.random.default_rng(seed)
    until = np.array([40 * i // 4 for i in range(5)])
    ladder, events = random.normal(size=(40, 3)).astype("f4"), random.normal(size=(40, 2)).astype("f4")
    path = np.concatenate([[0.0], np.cumsum(random.normal(0, 5, 4))])
    return ready(Blinded(("bid", "ask", "weight"), ladder, events, path, until, until))


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("raise ValueError('no')", "exception"),
        ("sys.exit(3)", "exception"),
        ("raise KeyboardInterrupt", "exception"),
        ("return float('nan')", "not_finite"),
        ("return 10 ** 400", "not_finite"),
        ("return 1.5", "out_of_range"),
        ("return 2 ** 70", "out_of_range"),
        ("return '0.5'", "wrong_type"),
        ("return True", "wrong_type"),
        ("return {1: 0.5}", "wrong_type"),
        ("return [0.5]", "wrong_length"),
        ("view.ladder['bid'] = 1.0; view.ladder.iloc[:] = 9.0; view.y[:] = 1.0; return 0.0", "exception"),
    ],
)
def test_an_answer_that_is_no_commitment_is_refused_with_its_code(backend: Backend, walk: Go, line: str, code: str) -> None:
    """I-54, I-55, IV-14, IV-15."""
    run = walk(backend, body(line), targets=1)
    assert run.broken is None
    assert run.codes[:3] == [code] * 3
    assert not run.walked[0].curves.any()


def test_a_good_number_is_spread_over_the_remaining_horizons(backend: Backend, walk: Go) -> None:
    """IV-15: 0.5 gives a curve of 0.5, int 1 a curve of 1.0."""
    run = walk(backend, body("return 1 if view.anchor else 0.5"), targets=1)
    assert run.walked[0].curves[0].tolist() == [0, 0.5, 0.5, 0.5, 0.5]
    assert run.walked[0].curves[1].tolist() == [0, 0, 1.0, 1.0, 1.0]


def test_writing_into_a_view_says_copy(backend: Backend, walk: Go) -> None:
    """I-42: the error text says `.copy()`."""
    run = walk(backend, body("view.ladder.to_numpy()[:] = 1.0"), targets=1)
    assert ".copy()" in run.walked[0].failures[0].trace


def test_a_predictor_that_raises_at_import_ends_the_run_as_load_failed(backend: Backend, walk: Go) -> None:
    """I-73."""
    broken = walk(backend, "raise RuntimeError('at import')").broken
    assert broken.reason == "load_failed"
    assert "at import" in broken.trace


@pytest.mark.parametrize(
    "source",
    ["class Predictor:\n    pass\n", "x = 1\n", "class Predictor:\n  def predict(", "import sys; sys.exit(0)", "import os; os._exit(3)"],
)
def test_what_cannot_be_loaded_is_load_failed(backend: Backend, walk: Go, source: str) -> None:
    """I-24, I-52."""
    assert walk(backend, source).broken.reason == "load_failed"


def test_a_fit_that_raises_ends_the_run_as_fit_failed(backend: Backend, walk: Go) -> None:
    """I-52."""
    broken = walk(backend, body("raise ZeroDivisionError('in fit')", at="fit(self, warmups)")).broken
    assert broken.reason == "fit_failed"
    assert "in fit" in broken.trace


def test_a_step_that_never_ends_is_killed_at_its_deadline_and_the_next_window_has_a_new_child(backend: Backend, walk: Go) -> None:
    """I-34, I-70, G-25."""
    source = body("if view.anchor == 1:", "    while True: pass", "return 0.25")
    run = walk(backend, source, targets=2, limits=Limits(step_wall_s=0.1))
    assert run.reasons == ["step_deadline"] * 2
    assert run.codes == ["deadline"] * 2
    assert run.walked[0].curves[0].tolist() == [0, 0.25, 0.25, 0.25, 0.25]
    assert len(run.seats) == 2


def test_after_three_new_children_the_remaining_windows_are_not_asked(backend: Backend, walk: Go) -> None:
    """I-34: `restarts_spent`."""
    run = walk(backend, body("os._exit(5)"), targets=5)
    assert run.reasons == ["exit:5"] * 4 + ["restarts_spent"]


def test_a_fit_that_never_ends_is_the_runs_deadline(backend: Backend, walk: Go) -> None:
    """I-73: `run_deadline`."""
    run = walk(backend, body("while True: pass", at="fit(self, warmups)"), limits=Limits(run_wall_s=0.3))
    assert run.broken.reason == "run_deadline"


def test_a_hundred_megabytes_of_output_end_the_child(backend: Backend, walk: Go) -> None:
    """A-32: `output` at 1 MiB, first and last kept, nothing that moves a cursor."""
    source = body("print('begin \\x1b[31m\\u202e')", "for _ in range(100): print('x' * (1 << 20))", "return 0.0")
    run = walk(backend, source, targets=1)
    assert run.reasons == ["output"]
    assert run.codes == ["died"]
    assert run.output.startswith("begin \n")
    assert "bytes left out" in run.output
    assert len(run.output) < 70_000


def test_what_an_honest_predictor_prints_is_kept(backend: Backend, walk: Go) -> None:
    """I-11: descriptors 1 and 2 are capped log pipes."""
    run = walk(backend, body("print('out', view.anchor)", "sys.stderr.write('err\\n')", "return 0.0"), targets=1)
    assert run.broken is None
    assert "out 3" in run.output
    assert "err" in run.output


def test_a_crash_in_native_code_ends_the_window_with_its_signal(backend: Backend, walk: Go) -> None:
    """A-34: `signal:<n>`."""
    run = walk(backend, body("import ctypes", "ctypes.string_at(0)"), targets=1)
    assert run.reasons == ["signal:11"]


def test_a_child_that_kills_itself_ends_its_window(hook: Hook, walk: Go) -> None:
    """A-34; in a pid namespace of its own the first process cannot be killed from within."""
    run = walk(hook, body("import ctypes", "ctypes.CDLL(None).kill(os.getpid(), 9)"), targets=1)
    assert run.reasons == ["signal:9"]


def test_a_fork_is_refused_with_words_that_help(backend: Backend, walk: Go) -> None:
    """K-12, A-24: the message tells what to do instead."""
    run = walk(backend, body("os.fork()"), targets=1)
    assert run.codes == ["exception"] * 3
    assert "use n_jobs=1, or threads" in run.walked[0].failures[0].trace


@pytest.mark.parametrize(
    "line",
    ["open('/etc/passwd')", "os.listdir('/')", "open('/submission/x', 'w')", "import socket; socket.create_connection(('127.0.0.1', 9))"],
)
def test_the_tripwire_names_the_rule(backend: Backend, walk: Go, line: str) -> None:
    """I-02, K-02."""
    run = walk(backend, body(line), targets=1)
    assert "isolation: a predictor" in run.walked[0].failures[0].trace


def test_an_orphan_that_left_its_group_is_gone_with_the_run(backend: Backend, walk: Go) -> None:
    """I-70: setsid twice forked, SIGTERM ignored, and still nothing of it is left."""
    source = body(
        "import ctypes, signal",
        "libc = ctypes.CDLL(None)",
        "if view.anchor == 0 and libc.fork() == 0:",
        "    libc.setsid()",
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)",
        "    if libc.fork() == 0:",
        "        while True: time.sleep(1)",
        "    while True: time.sleep(1)",
        "return 0.0",
    )
    walk(backend, body("return 0.0"), targets=1)
    before = psutil.Process().children(recursive=True)
    run = walk(backend, source, targets=1)
    assert run.broken is None
    left = [process for process in psutil.Process().children(recursive=True) if process not in before]
    assert psutil.wait_procs(left, timeout=1)[1] == []


def test_a_child_holds_five_descriptors_and_the_constant_environment(backend: Backend, walk: Go) -> None:
    """I-11, I-12."""
    source = body(
        "held = []",
        "for fd in range(256):",
        "    try: os.fstat(fd); held.append(fd)",
        "    except OSError: pass",
        "print(held, sorted(os.environ))",
        "return 0.0",
    )
    run = walk(backend, source, targets=1)
    assert "[0, 1, 2, 3, 4] ['ARROW_IO_THREADS', 'HOME', 'JOBLIB_MULTIPROCESSING', 'LANG'" in run.output
    assert "BLINDCAST" not in run.output


def as_the_host_sees_it(child: Any) -> psutil.Process:
    """The child's process."""
    fdinfo = Path(f"/proc/self/fdinfo/{child.pidfd}").read_text()
    return psutil.Process(next(int(row.split()[1]) for row in fdinfo.splitlines() if row.startswith("Pid:")))


def test_no_predictor_runs_as_uid_0(backend: Backend, seated: Callable[[Backend, str], Any]) -> None:
    """I-05, I-16."""
    seat = seated(backend, body("return 0.0"))
    try:
        uids = as_the_host_sees_it(seat._child).uids()
    finally:
        seat.leave()
    assert 0 not in uids
    assert set(uids) <= (set(range(61000, 62000)) if os.geteuid() == 0 else {os.getuid()})


def test_a_child_has_one_cpu_and_is_nice_to_the_server(backend: Backend, seated: Callable[[Backend, str], Any]) -> None:
    """I-61, I-82."""
    seat = seated(backend, body("return 0.0"))
    try:
        process = as_the_host_sees_it(seat._child)
        assert process.cpu_affinity() == [seat._child.cpu]
        assert process.nice() == min(psutil.Process().nice() + 10, 19)
    finally:
        seat.leave()


def test_a_stuck_child_would_spoil_its_own_uid(privdrop: Backend, seated: Callable[[Backend, str], Any]) -> None:
    """I-16, I-71: what is quarantined is the slot that the child has."""
    seat = seated(privdrop, body("return 0.0"))
    try:
        assert seat._child.quarantine.__self__.uid == seat._child.uid
    finally:
        seat.leave()


def test_random_states_are_set_to_the_seed(backend: Backend, walk: Go) -> None:
    """I-37."""
    source = "import random\nimport numpy as np\n" + body("return [random.random() * np.random.random() for _ in view.horizons]")
    first, second = walk(backend, source), walk(backend, source)
    assert first.walked[-1].head == second.walked[-1].head


def test_an_import_that_is_not_on_the_list_is_refused_by_name(backend: Backend, walk: Go) -> None:
    """I-25."""
    for name in ("torch", "blindcast", "msgspec"):
        broken = walk(backend, f"import {name}\n{HONEST}").broken
        assert broken.reason == "load_failed"
        assert f"ImportError: '{name}' is not among the libraries of this court: numpy, " in broken.trace


def test_a_submission_imports_its_own_modules_and_the_libraries_lazily(
    backend: Backend, walk: Go, submission: Callable[[str], Path]
) -> None:
    """I-22, I-25: lazy imports work after the drop."""
    (submission("") / "side.py").write_text("import decimal\nHALF = float(decimal.Decimal('0.5'))\n")
    run = walk(backend, body("import sklearn.tree, scipy.fft, lightgbm, side", "return side.HALF"), targets=1)
    assert run.broken is None
    assert run.walked[0].curves[0, 1] == 0.5


def test_hostile_frames_end_the_run(backend: Backend, walk: Go) -> None:
    """I-57: an answer in advance is `early`, garbage is `undecodable`, a huge length `oversize`."""
    for written, why in (("b'\\x01\\x00\\x00\\x00\\xc1'", "undecodable"), ("b'\\x01\\x00\\x01\\x00'", "oversize")):
        run = walk(backend, body(f"os.write(4, {written})", "return 0.0"), targets=1)
        assert run.broken is not None
        assert run.broken.reason == f"protocol.{why}"


def test_an_answer_after_the_answer_is_early_even_at_the_end(backend: Backend, walk: Go) -> None:
    """I-57: `bye` too."""
    source = body(
        "import threading", "threading.Timer(0.05, os.write, (4, b'xx')).start()", "if view.anchor == 3: time.sleep(0.2)", "return 0.0"
    )
    run = walk(backend, source, targets=1)
    assert run.broken is not None
    assert run.broken.reason.startswith("protocol.")


def test_memory_beyond_the_limit_is_a_memory_error_and_the_run_goes_on(backend: Backend, walk: Go) -> None:
    """A-29."""
    run = walk(backend, "import numpy as np\n" + body("np.zeros(9 << 30, dtype='u1')"), targets=1)
    assert run.codes == ["exception"] * 3
    assert "MemoryError" in run.walked[0].failures[0].trace


def test_the_hook_says_that_it_is_a_tripwire(capsys: pytest.CaptureFixture[str], walk: Go) -> None:
    """I-05."""
    backend = Hook()
    try:
        walk(backend, body("return 0.0"), targets=1)
    finally:
        backend.close()
    assert capsys.readouterr().err == f"{WARNING}\n"


def test_a_probe_reports_each_control_and_its_class(backend: Backend) -> None:
    """I-01, I-02, I-06: `hook` is a tripwire, the others are of class kernel."""
    report = backend.probe(Policy())
    states = {control.id: control.state for control in report.controls}
    assert report.available
    assert report.classed == ("tripwire" if backend.design.name == "hook" else "kernel")
    assert {states[c] for c in ("fds", "env", "rlimits", "no-new-privs", "hook", "seals")} == {"active"}
    assert states.get("seccomp", "active") == "active"
    assert all(c.state == "active" or c.detail for c in report.controls)


@pytest.mark.parametrize("control", ["seccomp", "undumpable", "rlimits", "uid-drop"])
def test_a_backend_without_a_required_control_is_not_available(privdrop: Backend, control: str) -> None:
    """I-01, section 2: a failed required control means unavailable."""
    backend = PrivDrop(without=(control,))
    try:
        report = backend.probe(Policy())
    finally:
        backend.close()
    assert not report.available
    assert control in report.reason


def test_a_raw_root_inside_what_a_child_can_read_is_refused(backend: Backend, submission: Callable[[str], Path], tmp_path: Path) -> None:
    """I-23, through a symlink too."""
    (tmp_path / "raw").symlink_to(Path(sys.prefix, "lib"))
    with open("/dev/null") as null, pytest.raises(DeniedError) as refused:
        backend.spawn(SpawnSpec(submission(body("return 0.0")), null.fileno(), 0, Policy(raw_roots=(tmp_path / "raw",))))
    assert refused.value.code == "raw_root_exposed"


def test_privdrop_hides_the_host_where_it_may_make_namespaces(privdrop: PrivDrop, walk: Go) -> None:
    """I-20: no `/proc`, no `/etc/passwd`, no writable path."""
    if {c.id: c.state for c in privdrop.probe(Policy()).controls}["mountns"] != "active":
        pytest.skip("no mount namespaces here")
    source = body(
        "import ctypes",
        "libc = ctypes.CDLL(None, use_errno=True)",
        "found = [libc.open(path, 0) for path in (b'/etc/passwd', b'/proc/self/environ', b'/home')]",
        "print(found, libc.mkdir(b'/x', 0o777), os.getpid())",
        "return 0.0",
    )
    run = walk(privdrop, source, targets=1)
    assert run.output.startswith("[-1, -1, -1] -1 1\n")


def test_privdrop_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """I-03."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    report = PrivDrop().probe(Policy())
    assert not report.available
    assert report.reason == "not started by root"


def test_what_was_found_unavailable_starts_no_child_afterwards(monkeypatch: pytest.MonkeyPatch, submission: Callable[[str], Path]) -> None:
    """I-01, I-04: never a weaker child, though the probe has been made and told before."""
    backend = PrivDrop()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not backend.probe(Policy()).available
    monkeypatch.undo()
    with pytest.raises(DeniedError, match="isolation privdrop is not available here: not started by root"):
        backend.spawn(SpawnSpec(submission("class Predictor: ..."), 0, 0, Policy()))


def test_no_capability_is_left_to_be_gained(backend: Backend, seated: Callable[[Backend, str], Any]) -> None:
    """I-10 step 8: the bounding set too, wherever the child could take from it."""
    if backend.design.name == "hook" and os.geteuid() != 0:
        pytest.skip("the hook takes no capability from an ordinary user")
    seat = seated(backend, "class Predictor:\n    def predict(self, view): return 0.0\n")
    try:
        assert seat._child is not None
        with open(f"/proc/self/fdinfo/{seat._child.pidfd}") as file:
            pid = next(row.split()[1] for row in file if row.startswith("Pid:"))
        with open(f"/proc/{pid}/status") as file:
            sets = {row.split()[0]: int(row.split()[1], 16) for row in file if row.startswith("Cap")}
    finally:
        seat.leave()
    assert set(sets.values()) == {0} or backend.design.name == "landlock"
