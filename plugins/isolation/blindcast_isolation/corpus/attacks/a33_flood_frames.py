"""Writes answers by hand: log frames without end, half a frame and silence, a byte now and then, none at all.

Against it: the caps of the protocol (`protocol.flood`, `oversize`, `unexpected`, `early`, `truncated`, `undecodable`), reads
and writes that never block, and the parent's clock (`step_deadline`), which a byte a second does not move.
"""

import os
import struct
import sys
import threading
import time

from toolbox import TARGETS, is_wanted, libc

ANSWERS = 4
TINY = b"\x93\xa3log\xa4info\xa1x"


def framed(body):
    return struct.pack("<I", len(body)) + body


def send(data):
    while data:
        data = data[os.write(ANSWERS, data) :]


def asked():
    """(seq, nonce) of the request at work, out of the frames that called us."""
    frame = sys._getframe()
    while frame is not None:
        for held in list(frame.f_locals.values()):
            seq, nonce = getattr(held, "seq", None), getattr(held, "nonce", None)
            if isinstance(seq, int) and isinstance(nonce, bytes):
                return seq, nonce
        frame = frame.f_back
    raise LookupError("no request in sight")


def curve(remaining, value=0.5):
    """A good answer to the request at work."""
    seq, nonce = asked()
    data = struct.pack(f"<{remaining}d", *[value] * remaining)
    return framed(b"\x95\xa5curve\xce" + struct.pack(">I", seq) + b"\xc4\x10" + nonce + b"\xa2ok\xc4" + bytes([len(data)]) + data)


def silence():
    while True:
        time.sleep(3600)


def endless(frame):
    many = frame * max(1, 4_096 // len(frame))
    while True:
        send(many)


def log_frames(remaining):
    endless(framed(TINY))


def long_logs(remaining):
    endless(framed(b"\x93\xa3log\xa4info\xda\x10\x01" + b"x" * 4_097))


def acks(remaining):
    seq, nonce = asked()
    endless(framed(b"\x93\xa3ack\xce" + struct.pack(">I", seq) + b"\xc4\x10" + nonce))


def empty_frames(remaining):
    endless(framed(b""))


def endless_body(remaining):
    send(b"\xff\xff\xff\xff")
    endless(b"\xc0" * 4_096)


def half_frame(remaining):
    send(curve(remaining)[:20])
    silence()


def half_frame_and_end(remaining):
    send(curve(remaining)[:20])
    os.close(ANSWERS)
    silence()


def drip(remaining):
    for byte in framed(TINY) * 1_000:
        send(bytes([byte]))
        time.sleep(0.05)


def never_read(remaining):
    """Answer by hand and never come back to read the next request."""
    send(curve(remaining))
    silence()


def full_requests(remaining):
    """The same, with the pipe of requests opened again for writing, where that can be done, and filled."""
    fd = libc.open(b"/proc/self/fd/3", os.O_WRONLY | os.O_NONBLOCK)
    if fd >= 0:
        try:
            while True:
                os.write(fd, bytes(4_096))
        except OSError:
            pass
    never_read(remaining)


def twice(remaining):
    send(curve(remaining))


def in_advance(remaining):
    """From a thread: log frames without end, while honest answers go on."""
    threading.Thread(target=log_frames, args=(remaining,), daemon=True).start()


ACTS = (
    log_frames,
    long_logs,
    acks,
    empty_frames,
    endless_body,
    half_frame,
    half_frame_and_end,
    drip,
    never_read,
    full_requests,
    twice,
    in_advance,
)

if TARGETS.get("variant") == "log_frames_import":
    log_frames(0)


class Predictor:
    def fit(self, warmups):
        if is_wanted("log_frames_fit"):
            log_frames(0)

    def predict(self, view):
        for act in ACTS:
            if is_wanted(act.__name__):
                act(len(view.horizons))
        return 0.5
