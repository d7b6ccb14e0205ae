"""Wrong configurations as a user sees them: which resource, which line, which words. The long table is a unit test of resources; here are rows of each
resource that pass through a real terraform, as `validate -json` and `plan -json` give them."""
import json
import re
import unittest

from tests.acceptance.harness.case import Case, both

F, T, J = "sless_function", "sless_trigger", "sless_job"
GOOD = {F: 'name = "f"\nruntime = "python3.11"\nsource_dir = "src"', T: 'name = "t"\nfunction = "f"', J: 'name = "j"\nfunction = "f"'}
CRON = 'type = "cron"\ncron = {\n%s\n}'
HTTP = 'type = "http"\nhttp = {\n%s\n}'

# (type, lines beside the good ones or instead of the same ones, path of the attribute, words of the summary or detail)
AT_VALIDATE = [
    (F, 'name = "Orders"', "name", "only a-z"),
    (F, 'name = ""', "name", "empty"),
    (F, 'namespace = "a/b"', "namespace", "only a-z"),
    (F, 'id = "default/f"', "id", "Read-Only Attribute"),
    (F, 'runtime = "python3.1"', "runtime", 'Did you mean "python3.11"?'),
    (F, 'entrypoint = "handler"', "entrypoint", "file.function"),
    (F, 'source_code = "x"', "source_dir", "Exactly one of source_dir, source_zip and source_code must be set"),
    (F, "memory_mb = 16", "memory_mb", "between 32 and 32768"),
    (F, "memory_mb = 256.5", "memory_mb", "256.5"),
    (F, "timeout_sec = -1", "timeout_sec", "got: -1"),
    (F, "concurrency = 0", "concurrency", "between 1 and 1000"),
    (F, "replicas = 1\nmin_replicas = 1", "replicas", "min_replicas"),
    (F, "min_replicas = 4\nmax_replicas = 2", "min_replicas", "max_replicas, which is 2"),
    (F, 'environment = {\n"1A" = "hush-hush"\n}', 'environment["1A"]', "does not begin with a digit"),
    (F, 'environment = {\nSLESS_X = "hush-hush"\n}', 'environment["SLESS_X"]', "SLESS_"),
    (F, 'labels = {\n"a b" = "c"\n}', 'labels["a b"]', "must have a key"),
    (F, 'timeouts {\ncreate = "30"\n}', "timeouts.create", 'got: "30"'),
    (T, 'namespace = ".."\n' + HTTP % "", "namespace", "only a-z"),
    (T, 'function = "default/f"\n' + HTTP % "", "function", "only a-z"),
    (T, 'type = "htp"\nhttp = {}', "type", 'Did you mean "http"?'),
    (T, 'type = "http"\ncron = {\nschedule = "@daily"\n}\nhttp = {}', "cron", 'must not be set where type is "http"'),
    (T, HTTP % 'auth = "basic"', "http.auth", '"none", "token"'),
    (T, HTTP % 'methods = ["GTE"]', "http.methods", 'Did you mean "GET"?'),
    (T, HTTP % 'path = "/a/../b"', "http.path", ".."),
    (T, CRON % 'schedule = "60 * * * *"', "cron.schedule", "minute"),
    (T, CRON % 'schedule = "0 0 30 2 *"', "cron.schedule", "never"),
    (T, CRON % 'schedule = "@daily"\ntimezone = "Europe/Berln"', "cron.timezone", "Europe/Berlin"),
    (T, CRON % 'schedule = "@daily"\ntimezone = "../../etc/passwd"', "cron.timezone", "is not an IANA time zone name"),
    (T, CRON % 'schedule = "@daily"\npayload = "{a:1}"', "cron.payload", "JSON"),
    (T, CRON % 'schedule = "@daily"\noverlap = "kill"', "cron.overlap", '"skip", "queue", "allow"'),
    (J, 'name = "a_b"', "name", "only a-z"),
    (J, 'phase = "Succeeded"', "phase", "Read-Only Attribute"),
    (J, "run_id = -1", "run_id", "-1"),
    (J, "run_id = 1.5", "run_id", "1.5"),
    (J, 'event_json = "{"', "event_json", "JSON"),
    (J, "max_retries = 11", "max_retries", "between 0 and 10"),
    (J, "wait_timeout_sec = 0", "wait_timeout_sec", "between 1 and 86400"),
]
AT_PLAN = [
    (F, 'source_dir = "absent"', "source_dir", "absent"),
    (F, 'source_dir = "src/handler.py"', "source_dir", "handler.py"),
    (F, 'entrypoint = "main.handle"', "entrypoint", "main.py"),
    (F, 'entrypoint = "handler.handel"', "entrypoint", "handle"),
]


def lines_of(kind, lines):
    """The good lines, but for those that `lines` has itself, and `lines`."""
    own = {line.partition(" =")[0] for line in lines.splitlines()}
    return [line for line in GOOD[kind].splitlines() if line.partition(" =")[0] not in own] + lines.splitlines()


def shown_at(path, lines):
    """-> the lines that a host may show for this path. It finds attributes, keys of maps and attributes of blocks; for what lies in a nested attribute
    it shows the resource's first line, and the text has to name the path."""
    last = re.split(r'[.\["\]]+', path.rstrip('"]'))[-1]
    found = [line for line in lines if re.match(rf'"?{re.escape(last)}"? = ', line[1])]
    return found + (lines[:1] if path.startswith(("http.", "cron.")) else [])


@both
class Invalid(Case):
    def write(self, rows):
        """-> {address: [(line's number, its text)]}"""
        self.ws.write("src/handler.py", "def handle(event, context):\n    return 1\n")
        self.ws.config("")
        with open(self.ws.path("main.tf"), encoding="utf-8") as file:
            text = file.read().splitlines()
        placed = {}
        for number, (kind, lines, _, _) in enumerate(rows):
            first = len(text) + 1
            text += [f'resource "{kind}" "r{number}" {{', *lines_of(kind, lines), "}"]
            placed[f"{kind}.r{number}"] = list(enumerate(text[first - 1:], start=first))
        self.ws.write("main.tf", "\n".join(text) + "\n")
        self.ws.init()
        return placed

    def check(self, rows, placed, diagnostics):
        for (address, lines), (_, body, path, words) in zip(placed.items(), rows):
            with self.subTest(address, row=body):
                kind, label = address.split(".")
                own = [one for one in diagnostics if one["snippet"]["context"] == f'resource "{kind}" "{label}"']
                found = [one for one in own if words in f"{one['summary']}\n{one['detail']}"]
                self.assertTrue(found, [(one["summary"], one["detail"]) for one in own])
                self.assertNotIn("hush-hush", "".join(one["detail"] for one in own))
                at = [(one["range"]["start"]["line"], one["snippet"]["code"].splitlines()[0].strip()) for one in found]
                self.assertIn(at[0], shown_at(path, lines), found)
                if at[0] == lines[0]:
                    self.assertIn(f"Attribute {path} ", found[0]["detail"])
                self.assertEqual({"main.tf"}, {one["range"]["filename"] for one in found})

    def test_found_by_validate(self):
        placed = self.write(AT_VALIDATE)
        for name in ("SLESS_ENDPOINT", "SLESS_TOKEN"):  # it needs no server
            self.ws.env.pop(name)
        done = self.ws.run("validate", "-json")
        self.check(AT_VALIDATE, placed, json.loads(done.out)["diagnostics"])

    def test_found_by_plan(self):
        placed = self.write(AT_PLAN)
        done = self.ws.run("plan", "-json", "-input=false")
        lines = [json.loads(line) for line in done.out.splitlines()]
        found = [line["diagnostic"] for line in lines if line["type"] == "diagnostic"]
        self.check(AT_PLAN, placed, found)
        self.assertEqual(set(placed), {one["address"] for one in found})


if __name__ == "__main__":
    unittest.main()
