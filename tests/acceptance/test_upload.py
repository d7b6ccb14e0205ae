"""Uploads of code that fail on the way: nothing half is kept, what served serves on, and the next apply needs no hand work."""
import os
import unittest

from tests.acceptance.harness.case import SERVED_FUNCTION, Case, both
from tests.acceptance.harness.proxy import Proxy

# How an upload fails, and what the user is told of it.
FAILURES = {"refuse": "413", "damage": "is damaged", "cut": "SLESS_ENDPOINT"}


@both
class Upload(Case):
    def setUp(self):
        super().setUp()
        self.proxy = Proxy(self.plane.url)
        self.addCleanup(self.proxy.close)
        self.ws.env["SLESS_ENDPOINT"] = self.proxy.url
        self.ws.config(SERVED_FUNCTION)

    def code(self, word):
        self.ws.write("fn/handler.py", f'def handle(event, context):\n    return "{word}"\n')
        # Something that no packing makes small: the cut is in the middle of a body that goes out in pieces.
        self.ws.write("fn/data.bin", os.urandom(2_000_000))

    def fails(self, how):
        self.proxy.spoil, self.proxy.spoiled = how, 0
        done = self.ws.apply_fails()
        self.proxy.spoil = None
        self.assertGreater(self.proxy.spoiled, 0)
        self.assert_says(done, "sless_function.f", "upload the code of", FAILURES[how])

    def succeeds(self, word):
        self.ws.apply()
        self.assertEqual((200, f'"{word}"'), (lambda a: (a.status, a.text))(self.plane.call(f"{self.ns}/f1")))

    def test_during_create(self):
        self.code("one")
        for how in FAILURES:
            with self.subTest(how):
                self.fails(how)
                self.assertIsNone(self.plane.object("functions", self.ns, "f1"), "nothing without its code")
        self.succeeds("one")
        self.assert_plan_empty()
        self.assertEqual(1, self.ws.state("sless_function.f")["revision"])

    def test_during_update(self):
        self.code("one")
        self.succeeds("one")
        for revision, how in enumerate(FAILURES, start=2):
            with self.subTest(how):
                self.code(how)
                before = self.plane.call(f"{self.ns}/f1").text
                self.fails(how)
                self.assertEqual(before, self.plane.call(f"{self.ns}/f1").text, "the old revision serves on")
                self.assertIn("source_hash", self.ws.plan()["sless_function.f"].attributes, "the update is still to do")
                self.succeeds(how)
                self.assertEqual(revision, self.plane.object("functions", self.ns, "f1")["status"]["revision"])
        self.assert_plan_empty()


if __name__ == "__main__":
    unittest.main()
