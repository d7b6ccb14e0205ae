"""Packs hello_node/ into hello_node.zip, the same bytes each time. Run it after a change of hello_node/."""

import pathlib
import zipfile

here = pathlib.Path(__file__).parent
source = here / "hello_node"
with zipfile.ZipFile(here / "hello_node.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    for file in sorted(p for p in source.rglob("*") if p.is_file()):
        entry = zipfile.ZipInfo(file.relative_to(source).as_posix(), date_time=(1980, 1, 1, 0, 0, 0))
        entry.external_attr = 0o100644 << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, file.read_bytes())
