"""Proxies on loopback between provider and server, for what goes wrong on the way: an upload that is refused, damaged or cut."""
import contextlib
import re
import socket
import struct
import threading
import urllib.parse


class Listener:
    """Accepts connections on loopback; each gets a thread for _serve(socket). port: where."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)  # wakes accept() on every kernel, which close() alone does not
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()


class Proxy(Listener):
    """Passes requests on to `target` (a URL), one connection for each. url: where it listens.

    spoil: what happens to uploads of code, may be changed at any time:
        None       they pass
        "refuse"   a 413 is answered before the body is read, as proxies with a limit do; the server hears nothing
        "damage"   a byte in the middle of the body is turned over
        "cut"      half of the body reaches the server, then both connections are reset
    spoiled: how many were."""

    def __init__(self, target):
        parts = urllib.parse.urlsplit(target)
        self.target = (parts.hostname, parts.port)
        self.spoil, self.spoiled = None, 0
        super().__init__()
        self.url = f"http://127.0.0.1:{self.port}"

    def _serve(self, client):
        with client, contextlib.suppress(OSError):
            client.settimeout(90)
            reader = client.makefile("rb")
            head, length = self._head(reader)
            if not head:
                return
            spoil = self.spoil if re.match(rb"PUT [^ ]+/code/", head) else None
            self.spoiled += spoil is not None
            if spoil == "refuse":
                client.sendall(b"HTTP/1.1 413 Request Entity Too Large\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n"
                               b"<html>too large for this proxy</html>")
                client.shutdown(socket.SHUT_WR)
            body = self._body(reader, length)
            if spoil == "refuse":
                return
            if spoil == "damage":
                body[len(body) // 2] ^= 0xFF
            with socket.create_connection(self.target, timeout=90) as server:
                # One request for each connection, whatever the two would rather have.
                server.sendall(head + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body))
                server.sendall(body[:len(body) // 2] if spoil == "cut" else body)
                if spoil == "cut":
                    reader.close()  # or the socket outlives its close()
                    for end in (server, client):
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, no end
                    return
                while piece := server.recv(65536):
                    client.sendall(piece)
            reader.close()

    @staticmethod
    def _head(reader):
        """-> (head without its framing and the empty line, length of the body or None where it comes in chunks)"""
        head, length = b"", 0
        while (line := reader.readline(65536)).strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            elif name.lower() == b"transfer-encoding":
                length = None
            elif name.lower() != b"connection":
                head += line
        return head, length

    @staticmethod
    def _body(reader, length):
        if length is not None:
            return bytearray(reader.read(length))
        body = bytearray()
        while size := int(reader.readline(64).partition(b";")[0] or b"0", 16):
            body += reader.read(size)
            reader.readline(64)
        reader.readline(64)
        return body
