#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bazel_like.py PORT: the rules of bazel-remote that matter to a client, on loopback. /cas checks the digest on PUT; /ac must be
a valid ActionResult, is re-encoded, and is 404 when its blob is gone; there is no conditional PUT.

    DELETE /cas/<digest>    as an eviction would: a real server has no such call
"""
import hashlib
import http.server
import re
import sys

kept = {}


def varint(data, at):
    out = shift = 0
    while True:
        byte = data[at]
        out |= (byte & 127) << shift
        at += 1
        shift += 7
        if byte < 128:
            return out, at


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 2:
            size, at = varint(data, at)
            if at + size > len(data):
                raise ValueError("cut")
            value, at = data[at:at + size], at + size
        else:
            raise ValueError("not expected")
        yield tag >> 3, value


def blob_of(record):
    for number, value in fields(record):
        if number == 2:
            digest = dict(fields(dict(fields(value))[2]))
            return digest[1].decode()
    raise ValueError("no output file")


class handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        body = kept.get(self.path)
        if body is not None and self.path.startswith("/ac/") and "/cas/" + blob_of(body) not in kept:
            body = None
        self.answer(404 if body is None else 200, body or b"")

    do_HEAD = do_GET

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        name = self.path.rpartition("/")[2]
        if not re.fullmatch("[0-9a-f]{64}", name):
            return self.answer(400)
        if self.path.startswith("/cas/") and hashlib.sha256(body).hexdigest() != name:
            return self.answer(400)
        if self.path.startswith("/ac/"):
            try:
                if "/cas/" + blob_of(body) not in kept:
                    return self.answer(400)
            except (ValueError, KeyError, IndexError):
                return self.answer(400)
        kept[self.path] = body
        self.answer(200)

    def do_DELETE(self):
        self.answer(200 if kept.pop(self.path, None) is not None else 404)


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), handler).serve_forever()
