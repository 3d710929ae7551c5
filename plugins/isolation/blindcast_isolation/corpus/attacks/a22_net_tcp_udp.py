"""Reach listeners on loopback: TCP, UDP, Multipath TCP, raw, v4 and v6, names, unix sockets, and the network code of allowed libraries.

Against it: seccomp leaves no socket of any family, a network namespace, Landlock's TCP rules (I-14), which know nothing of Multipath TCP
and UDP. A way out is what a leak needs: a predictor that may connect can ask an oracle for tomorrow's prices.
"""

import ctypes
import os
import socket
import struct

from toolbox import TARGETS, attempt, checked, libc, number, syscall

TCP, TCP6, UDP = TARGETS["tcp_port"], TARGETS["tcp6_port"], TARGETS["udp_port"]
ABSTRACT, UNIX = TARGETS["abstract"], TARGETS["unix_path"]
MPTCP, SCTP, DCCP, UDPLITE = 262, 132, 33, 136
FASTOPEN = 0x2000_0000
V4, V6 = "127.0.0.1", "::1"
WAIT_S = 0.3
STREAM, DATAGRAM, RAW, SEQPACKET = 1, 2, 3, 5
INET, INET6, LOCAL, NETLINK, PACKET, ALG, VSOCK = 2, 10, 1, 16, 17, 38, 40


def words(variant):
    return f"blindcast-attack-{variant}".encode()


def via(variant, family, kind, protocol, address):
    """Connect and say the variant's name, by Python's own socket."""
    with socket.socket(family, kind, protocol) as line:
        line.settimeout(WAIT_S)
        line.connect(address)
        line.send(words(variant))
    return f"connected to {address}"


def connect_ex(variant):
    with socket.socket() as line:
        line.settimeout(WAIT_S)
        error = line.connect_ex((V4, TCP))
        if error:
            raise OSError(error, os.strerror(error))
        line.sendall(words(variant))
    return "connected"


def create_connection(variant):
    with socket.create_connection((V4, TCP), WAIT_S) as line:
        line.sendall(words(variant))
    return "connected"


def sendto(variant):
    with socket.socket(type=socket.SOCK_DGRAM) as line:
        return f"{line.sendto(words(variant), (V4, UDP))} bytes sent"


def sendmsg(variant):
    with socket.socket(type=socket.SOCK_DGRAM) as line:
        return f"{line.sendmsg([words(variant)], [], 0, (V4, UDP))} bytes sent"


def mapped_v4(variant):
    """A v4 listener by a v6 socket."""
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as line:
        return f"{line.sendto(words(variant), (f'::ffff:{V4}', UDP))} bytes sent"


def any_address(variant):
    """0.0.0.0 means this host, too."""
    return via(variant, socket.AF_INET, socket.SOCK_STREAM, 0, ("0.0.0.0", TCP))


def fastopen(variant):
    """Data with the connection request: no connect is called."""
    with socket.socket() as line:
        return f"{line.sendto(words(variant), FASTOPEN, (V4, TCP))} bytes sent"


def raw_udp(variant):
    """A datagram built by hand, in a raw packet."""
    data = words(variant)
    packet = struct.pack("!HHHH", 9, UDP, 8 + len(data), 0) + data
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) as line:
        return f"{line.sendto(packet, (V4, 0))} bytes sent"


def ping(variant):
    """An echo request, by the socket that needs no right where the host grants it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as line:
        line.settimeout(WAIT_S)
        line.sendto(struct.pack("!BBHHH", 8, 0, 0, 0, 1) + words(variant), (V4, 0))
        return line.recv(200)


def packet(variant):
    """Straight on the wire."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as line:
        line.bind(("lo", 0))
        return f"{line.send(bytes(14) + words(variant))} bytes sent"


def getaddrinfo(variant):
    for family, kind, protocol, _, address in socket.getaddrinfo("localhost", TCP, type=socket.SOCK_STREAM):
        try:
            return via(variant, family, kind, protocol, address)
        except ConnectionRefusedError:
            continue
    return None


def gethostbyname(variant):
    return via(variant, socket.AF_INET, socket.SOCK_STREAM, 0, (socket.gethostbyname("localhost"), TCP))


def getaddrinfo_libc(variant):
    """The C library's resolver, then a connection."""

    class Info(ctypes.Structure):
        pass

    Info._fields_ = (
        *((name, ctypes.c_int) for name in ("flags", "family", "kind", "protocol")),
        ("size", ctypes.c_uint),
        ("address", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("next", ctypes.POINTER(Info)),
    )
    found = ctypes.POINTER(Info)()
    error = libc.getaddrinfo(b"localhost", str(TCP).encode(), None, ctypes.byref(found))
    if error:
        raise OSError(error, "getaddrinfo")
    refused, info = ConnectionRefusedError("no address"), found
    while info:
        one = info.contents
        try:
            return by_libc(variant, one.family, STREAM, 0, ctypes.string_at(one.address, one.size))
        except OSError as error:
            refused, info = error, one.next
    raise refused


def by_asyncio(variant):
    import asyncio

    async def say():
        _, writer = await asyncio.wait_for(asyncio.open_connection(V4, TCP), WAIT_S)
        writer.write(words(variant))
        await writer.drain()
        writer.close()

    asyncio.run(say())
    return "connected"


def urllib(variant):
    import urllib.request

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return opener.open(f"http://{V4}:{TCP}/{words(variant).decode()}", timeout=WAIT_S).read(100)
    except (TimeoutError, ConnectionResetError) as error:
        return f"asked: {error}"


def http_client(variant):
    import http.client

    line = http.client.HTTPConnection(V4, TCP, timeout=WAIT_S)
    line.request("GET", "/" + words(variant).decode())
    line.close()
    return "asked"


def arrow_s3(variant):
    """An allowed library's own network code, in C++: it raises no audit event."""
    import pyarrow.fs

    store = pyarrow.fs.S3FileSystem(
        access_key=variant,
        secret_key="none",
        region="us-east-1",
        endpoint_override=f"{V4}:{TCP}",
        scheme="http",
        connect_timeout=WAIT_S,
        request_timeout=WAIT_S,
        retry_strategy=pyarrow.fs.AwsStandardS3RetryStrategy(max_attempts=1),
    )
    return str(store.get_file_info(words(variant).decode() + "/x"))


def pandas_url(variant):
    import pandas

    return str(pandas.read_csv(f"http://{V4}:{TCP}/{words(variant).decode()}"))


def sockaddr(family, port):
    if family == INET:
        return struct.pack("=H", family) + struct.pack("!H4s8x", port, socket.inet_aton(V4))
    return struct.pack("=H", family) + struct.pack("!HI16sI", port, 0, socket.inet_pton(socket.AF_INET6, V6), 0)


def unix_address(path):
    return struct.pack("=H", LOCAL) + path


def by_libc(variant, family, kind, protocol, address):
    fd = checked(libc.socket(family, kind, protocol))
    try:
        checked(libc.connect(fd, address, len(address)))
        text = words(variant)
        return f"{checked(libc.send(fd, text, ctypes.c_size_t(len(text)), 0))} bytes sent"
    finally:
        libc.close(fd)


def by_number(variant, family, kind, protocol, address):
    fd = syscall(number(41, 198), family, kind, protocol)
    try:
        syscall(number(42, 203), fd, address, len(address))
        text = words(variant)
        return f"{syscall(number(44, 206), fd, text, len(text), 0, None, 0)} bytes sent"
    finally:
        libc.close(fd)


def sendto_number(variant, family, kind, protocol, address, flags=0):
    """Without a connect."""
    fd, text = syscall(number(41, 198), family, kind, protocol), words(variant)
    try:
        return f"{syscall(number(44, 206), fd, text, len(text), flags, address, len(address))} bytes sent"
    finally:
        libc.close(fd)


def sendmmsg_libc(variant, address):
    """Many datagrams by one call."""
    fd, text = checked(libc.socket(INET, DATAGRAM, 0)), words(variant)
    block, name = ctypes.create_string_buffer(text), ctypes.create_string_buffer(address)
    part = (ctypes.c_ulong * 2)(ctypes.addressof(block), len(text))
    message = (ctypes.c_ulong * 8)(ctypes.addressof(name), len(address), ctypes.addressof(part), 1, 0, 0, 0, 0)
    try:
        return f"{checked(libc.sendmmsg(fd, message, 1, 0))} messages sent"
    finally:
        libc.close(fd)


def accepted(variant):
    """Wait for others to come: a listener of its own."""
    with socket.socket() as line:
        line.bind((V4, 0))
        line.listen(1)
        return f"listens on {line.getsockname()}"


def neighbours(family, kind, protocol):
    """A socket of a family that knows the host: what it can be asked for."""
    fd = syscall(number(41, 198), family, kind, protocol)
    libc.close(fd)
    return f"a socket of family {family}"


def pair_libc():
    pair = (ctypes.c_int * 2)()
    checked(libc.socketpair(LOCAL, STREAM, 0, pair))
    for fd in pair:
        libc.close(fd)
    return "a pair of sockets"


ABSTRACT_NAME = b"\0" + ABSTRACT.encode()
PYTHON = {
    "tcp": (socket.AF_INET, STREAM, 0, (V4, TCP)),
    "tcp6": (socket.AF_INET6, STREAM, 0, (V6, TCP6)),
    "udp": (socket.AF_INET, DATAGRAM, 0, (V4, UDP)),
    "mptcp": (socket.AF_INET, STREAM, MPTCP, (V4, TCP)),
    "mptcp6": (socket.AF_INET6, STREAM, MPTCP, (V6, TCP6)),
    "sctp": (socket.AF_INET, STREAM, SCTP, (V4, TCP)),
    "dccp": (socket.AF_INET, 6, DCCP, (V4, TCP)),
    "udplite": (socket.AF_INET, DATAGRAM, UDPLITE, (V4, UDP)),
    "unix": (socket.AF_UNIX, STREAM, 0, UNIX),
    "abstract": (socket.AF_UNIX, STREAM, 0, ABSTRACT_NAME),
    "vsock": (VSOCK, STREAM, 0, (1, TCP)),
}
NATIVE = {
    "tcp": (INET, STREAM, 0, sockaddr(INET, TCP)),
    "tcp6": (INET6, STREAM, 0, sockaddr(INET6, TCP6)),
    "udp": (INET, DATAGRAM, 0, sockaddr(INET, UDP)),
    "mptcp": (INET, STREAM, MPTCP, sockaddr(INET, TCP)),
    "mptcp6": (INET6, STREAM, MPTCP, sockaddr(INET6, TCP6)),
    "unix": (LOCAL, STREAM, 0, unix_address(UNIX.encode() + b"\0")),
    "abstract": (LOCAL, STREAM, 0, unix_address(ABSTRACT_NAME)),
}
ACTS = (
    connect_ex,
    create_connection,
    sendto,
    sendmsg,
    mapped_v4,
    any_address,
    fastopen,
    raw_udp,
    ping,
    packet,
    getaddrinfo,
    gethostbyname,
    getaddrinfo_libc,
    by_asyncio,
    urllib,
    http_client,
    pandas_url,
    arrow_s3,
    accepted,
)


class Predictor:
    tries = True  # once a run: what it prints has a cap

    def predict(self, view):
        if self.tries:
            self.tries = False
            for name, (family, kind, protocol, address) in PYTHON.items():
                attempt(f"python_{name}", via, f"python_{name}", family, kind, protocol, address)
            for act in ACTS:
                attempt(act.__name__, act, act.__name__)
            for name, line in NATIVE.items():
                attempt(f"libc_{name}", by_libc, f"libc_{name}", *line)
                attempt(f"number_{name}", by_number, f"number_{name}", *line)
            attempt("number_sendto_udp", sendto_number, "number_sendto_udp", *NATIVE["udp"])
            attempt("number_fastopen", sendto_number, "number_fastopen", *NATIVE["tcp"], FASTOPEN)
            attempt("number_fastopen_mptcp", sendto_number, "number_fastopen_mptcp", *NATIVE["mptcp"], FASTOPEN)
            attempt("sendmmsg_libc", sendmmsg_libc, "sendmmsg_libc", NATIVE["udp"][3])
            for name, line in (
                ("netlink", (NETLINK, RAW, 0)),
                ("packet", (PACKET, DATAGRAM, 0)),
                ("raw", (INET, RAW, 255)),
                ("raw6", (INET6, RAW, 58)),
                ("alg", (ALG, SEQPACKET, 0)),
                ("vsock", (VSOCK, STREAM, 0)),
            ):
                attempt(f"family_{name}", neighbours, *line)
            attempt("pair_libc", pair_libc)
        return 0.5
