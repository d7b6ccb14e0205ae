"""What the acceptance tests share: one slessd for a test class, one workspace for a test, a namespace of its own for each test."""
import itertools
import os
import unittest

from .control_plane import ControlPlane
from .terraform_cli import Workspace, binaries

_numbers = itertools.count(1)

# A function of the folder `fn`, f1, and an http trigger that makes it answer.
SERVED_FUNCTION = '''
resource "sless_function" "f" {
  name       = "f1"
  runtime    = "python3.11"
  source_dir = "fn"
}
resource "sless_trigger" "t" {
  name     = "t1"
  function = sless_function.f.name
  type     = "http"
  http     = { auth = "none" }
}
'''


class Case(unittest.TestCase):
    """self.plane: a running slessd; self.ns: a fresh namespace; self.ws: a workspace whose provider uses that namespace."""

    config = None  # text of slessd's config file, None for none
    binary = None  # path of terraform or tofu, None for the first found

    @classmethod
    def setUpClass(cls):
        cls.plane = ControlPlane(config=cls.config)
        try:
            cls.plane.start()
        except BaseException:
            cls.plane.stop()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.plane.stop()

    def setUp(self):
        self.ns = f"t{os.getpid() % 10000}-{next(_numbers)}"
        self.ws = Workspace(self.plane, binary=self.binary, namespace=self.ns)
        self.addCleanup(self.ws.close)

    # --- checks -------------------------------------------------------------------------------------------------------------

    def assert_plan_empty(self, ws=None):
        """The next plan is empty, with and without refresh."""
        ws = ws or self.ws
        self.assertEqual({}, ws.plan("-refresh=false"), "plan without refresh after apply")
        self.assertEqual({}, ws.plan(), "plan after apply")

    def assert_one_change(self, address, *attributes, ws=None):
        """The plan updates that one resource in place, and of it just these attributes."""
        changes = (ws or self.ws).plan()
        self.assertEqual([address], sorted(a for a in changes if not a.startswith("output.")), changes)
        self.assertEqual(["update"], changes[address].actions)
        self.assertEqual(set(attributes), changes[address].attributes)

    def assert_says(self, done, *parts):
        """The command's text has every part, white space and frames aside."""
        for part in parts:
            self.assertIn(part, done.flat)


def both(cls):
    """Class decorator: one more class for each further host program found, named after it. For classes of less than a minute."""
    import sys

    module = sys.modules[cls.__module__]
    for path in binaries()[1:]:
        name = f"{cls.__name__}_{os.path.basename(path)}"
        setattr(module, name, type(name, (cls,), {"binary": path, "__module__": cls.__module__}))
    return cls
