"""The provider's own configuration: where its values come from, and servers that cannot be used."""
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest
import urllib.parse

from tests.acceptance.harness.case import Case, both
from tests.acceptance.harness.proxy import Listener

FUNCTION = 'resource "sless_function" "f" {\n  name = "f1"\n  runtime = "python3.11"\n  source_code = "def handle(event):\\n    return 1\\n"\n%s}\n'


@both
class Provider(Case):
    def test_wrong_token_and_unreachable_server_fail_at_plan(self):
        self.ws.config(FUNCTION % "")
        self.ws.init()
        self.ws.env["SLESS_TOKEN"] = "sless_nonsense_wrong"
        done = self.ws.plan_fails()
        self.assertLess(done.seconds, 10)
        self.assert_says(done, "SLESS_TOKEN", self.plane.url)
        self.assertNotIn("sless_nonsense_wrong", done.text)
        self.ws.env["SLESS_TOKEN"] = self.plane.token
        self.ws.env["SLESS_ENDPOINT"] = "http://127.0.0.1:9"
        done = self.ws.plan_fails()
        self.assertLess(done.seconds, 10)
        self.assert_says(done, "SLESS_ENDPOINT", "127.0.0.1:9", "refused")
        del self.ws.env["SLESS_ENDPOINT"]
        self.assert_says(self.ws.plan_fails(), "endpoint", "SLESS_ENDPOINT")
        self.ws.env["SLESS_ENDPOINT"] = self.plane.url
        del self.ws.env["SLESS_TOKEN"]
        self.assert_says(self.ws.plan_fails(), "token", "SLESS_TOKEN")

    def test_configuration_in_hcl_wins_and_the_token_is_in_no_output(self):
        token = self.ws.env.pop("SLESS_TOKEN")
        self.ws.env["SLESS_ENDPOINT"] = "http://127.0.0.1:9"
        self.ws.config(f'provider "sless" {{\n  endpoint = "{self.plane.url}"\n  token = "{token}"\n  namespace = "{self.ns}-x"\n}}\n' + FUNCTION % "")
        done = self.ws.apply(env={"TF_LOG": "trace"})
        self.assertIsNotNone(self.plane.object("functions", self.ns + "-x", "f1"))
        self.assertNotIn(token, done.out)
        self.assertNotIn(token, "\n".join(line for line in done.err.splitlines() if "provider.terraform-provider-sless" in line))
        self.assert_plan_empty()

    def test_endpoint_unknown_at_plan_never_falls_back(self):
        self.ws.env["SLESS_ENDPOINT"] = "http://127.0.0.1:9"
        self.ws.config(f'resource "terraform_data" "e" {{\n  input = "{self.plane.url}"\n}}\nprovider "sless" {{\n  endpoint = terraform_data.e.output\n}}\n' + FUNCTION % "")
        self.ws.apply()
        self.assertIsNotNone(self.plane.object("functions", self.ns, "f1"))

    def test_validate_needs_no_server(self):
        self.ws.env.pop("SLESS_ENDPOINT")
        self.ws.env.pop("SLESS_TOKEN")
        self.ws.config(FUNCTION % "")
        self.ws.init()
        self.ws.ok("validate")


class TlsProxy(Listener):
    """Takes TLS with a certificate of its own (for 127.0.0.1 and localhost, signed by itself) and passes what it hears on to a server's port."""

    def __init__(self, port, names="IP:127.0.0.1,DNS:localhost"):
        self.dir = tempfile.mkdtemp(prefix="sless-tls-")
        self.ca_file = os.path.join(self.dir, "cert.pem")
        key = os.path.join(self.dir, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=sless test",
                        "-addext", f"subjectAltName={names}", "-keyout", key, "-out", self.ca_file], check=True, capture_output=True, timeout=30)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.ca_file, key)
        self.target = ("127.0.0.1", port)
        super().__init__()
        self.url = f"https://127.0.0.1:{self.port}"

    def close(self):
        super().close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def _serve(self, peer):
        try:
            peer.settimeout(90)
            with self.context.wrap_socket(peer, server_side=True) as client, socket.create_connection(self.target, timeout=90) as server:
                threading.Thread(target=self._pump, args=(server, client), daemon=True).start()
                self._pump(client, server)
        except OSError:
            peer.close()

    @staticmethod
    def _pump(source, sink):
        try:
            while piece := source.recv(65536):
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


@both
class Tls(Case):
    def setUp(self):
        super().setUp()
        self.proxy = TlsProxy(urllib.parse.urlsplit(self.plane.url).port)
        self.addCleanup(self.proxy.close)
        self.ws.env["SLESS_ENDPOINT"] = self.proxy.url

    def provider(self, body):
        self.ws.config('provider "sless" {\n%s\n}\n' % body + FUNCTION % "")

    def test_own_authority(self):
        self.provider(f'ca_file = "{self.proxy.ca_file}"')
        self.ws.apply()
        self.assert_plan_empty()
        self.assertIsNotNone(self.plane.object("functions", self.ns, "f1"))
        self.ws.destroy()

    def test_unknown_authority_is_refused_with_the_way_out(self):
        self.provider("")
        done = self.ws.plan_fails()
        self.assertLess(done.seconds, 10)
        self.assert_says(done, "certificate", "ca_file", self.proxy.url, "SLESS_ENDPOINT")
        self.assertNotIn("attempts)", done.flat, "a certificate does not get better by asking again")

    def test_another_authority_is_refused(self):
        other = TlsProxy(9)
        self.addCleanup(other.close)
        self.provider(f'ca_file = "{other.ca_file}"')
        self.assert_says(self.ws.plan_fails(), "certificate", "ca_file", self.proxy.url)

    def test_certificate_of_another_host(self):
        other = TlsProxy(self.proxy.target[1], names="DNS:sless.example")
        self.addCleanup(other.close)
        self.ws.env["SLESS_ENDPOINT"] = other.url
        self.provider(f'ca_file = "{other.ca_file}"')
        self.assert_says(self.ws.plan_fails(), "127.0.0.1", "certificate")

    def test_ca_file_that_is_missing_or_no_certificate(self):
        self.provider('ca_file = "nowhere.pem"')
        self.assert_says(self.ws.plan_fails(), "ca_file", "nowhere.pem", "main.tf line")
        self.ws.write("empty.pem", "no certificate in here\n")
        self.provider('ca_file = "empty.pem"')
        self.assert_says(self.ws.plan_fails(), "ca_file", "empty.pem")

    def test_http_to_a_tls_port_and_tls_to_an_http_port(self):
        self.provider("")
        self.ws.env["SLESS_ENDPOINT"] = self.proxy.url.replace("https", "http")
        self.assert_says(self.ws.plan_fails(), "SLESS_ENDPOINT", str(self.proxy.port))
        self.ws.env["SLESS_ENDPOINT"] = self.plane.url.replace("http", "https")
        self.assert_says(self.ws.plan_fails(), "SLESS_ENDPOINT", "http")


@both
class Unreachable(Case):
    """A server that cannot be used fails the plan within 10 s, names the endpoint and the variable, and never shows the token."""

    def fails(self, endpoint, *texts):
        self.ws.config(FUNCTION % "")
        self.ws.init()
        self.ws.env["SLESS_ENDPOINT"] = endpoint
        done = self.ws.plan_fails()
        self.assertLess(done.seconds, 10)
        self.assert_says(done, "SLESS_ENDPOINT", endpoint.split("//")[1].split("/")[0], *texts)
        self.assertNotIn(self.plane.token, done.text)

    def test_a_server_that_never_answers(self):
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        self.fails(f"http://127.0.0.1:{silent.getsockname()[1]}")

    def test_a_name_that_is_none(self):
        self.fails("http://sless.invalid:8470", "sless.invalid")

    def test_something_else_that_answers(self):
        self.fails(self.plane.url + "/fn", "there is no function", "check that it is the right one")

    def test_endpoints_that_are_none(self):
        for endpoint in ("127.0.0.1:8470", "ftp://127.0.0.1", "http://", "http://127.0.0.1:99999", "http://127.0.0.1:8470/?x=1", "http://user:pw@127.0.0.1:8470", " "):
            with self.subTest(endpoint):
                self.ws.config(FUNCTION % "")
                self.ws.init()
                self.ws.env["SLESS_ENDPOINT"] = endpoint
                done = self.ws.plan_fails()
                self.assert_says(done, "SLESS_ENDPOINT", "endpoint")
                self.assertNotIn(":pw@", done.text)


if __name__ == "__main__":
    unittest.main()
