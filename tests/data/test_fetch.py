"""Raw files: where they are looked for, what is refused, and what the user is told."""

import gzip
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from certified_unlearning.data.adult import ADULT
from certified_unlearning.data.cifar10 import TEN_CLASSES
from certified_unlearning.data.digits import DIGITS
from certified_unlearning.data.fetch import as_published, fetch, fetch_file, in_place, write_manifest
from certified_unlearning.data.raw_file import RawFile
from certified_unlearning.data.sets import DATA_SETS, find
from certified_unlearning.errors import DataError, ParameterError, StorageError

CONTENT = b"\x00\x00\x08\x01\x00\x00\x00\x03abc"
PUBLISHED = gzip.compress(CONTENT, mtime=0)


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/cut.gz":  # Announces more than it sends.
            self.send_response(200)
            self.send_header("Content-Length", str(len(PUBLISHED) + 100))
            self.end_headers()
            self.wfile.write(PUBLISHED)
        else:
            super().do_GET()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A web server on this machine: its address and the directory it serves."""
    root = tmp_path / "served"
    root.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(root))) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}", root
        httpd.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _no_data_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UNLEARNING_DATA", raising=False)


def raw_file(*addresses: str) -> RawFile:
    md5 = hashlib.md5(PUBLISHED).hexdigest()
    return RawFile("small/values.gz", hashlib.sha256(CONTENT).hexdigest(), md5, addresses)


def place(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_a_download_is_put_in_place(server: tuple[str, Path], tmp_path: Path) -> None:
    address, root = server
    place(root / "values.gz", PUBLISHED)
    path = fetch_file(raw_file(f"{address}/values.gz"), tmp_path / "raw")
    assert path == tmp_path / "raw" / "small" / "values.gz"
    assert path.read_bytes() == PUBLISHED


def test_the_second_address_is_tried_when_the_first_fails(server: tuple[str, Path], tmp_path: Path) -> None:
    address, root = server
    place(root / "wrong.gz", gzip.compress(b"something else"))
    place(root / "values.gz", PUBLISHED)
    addresses = f"{address}/absent.gz", f"{address}/cut.gz", f"{address}/wrong.gz", f"{address}/values.gz"
    assert fetch_file(raw_file(*addresses), tmp_path / "raw").read_bytes() == PUBLISHED


def test_one_sentence_says_what_was_tried_and_what_to_do(server: tuple[str, Path], tmp_path: Path) -> None:
    address, root = server
    place(root / "wrong.gz", gzip.compress(b"something else"))
    found = hashlib.sha256(b"something else").hexdigest()
    raw = raw_file(f"{address}/absent.gz", f"{address}/cut.gz", f"{address}/wrong.gz", "http://127.0.0.1:9/closed.gz")
    with pytest.raises(DataError) as caught:
        fetch_file(raw, tmp_path / "raw")
    message = str(caught.value)
    for part in (
        "small/values.gz could not be obtained",
        "UNLEARNING_DATA is not set",
        "is not in a DVC repository",
        f"{address}/absent.gz failed (HTTP 404 File not found)",
        f"{address}/cut.gz failed (the connection closed after",
        f"{address}/wrong.gz is not the published small/values.gz",
        found,
        raw.sha256,
        "http://127.0.0.1:9/closed.gz failed (Connection refused)",
        f"save it as {tmp_path / 'raw' / 'small' / 'values.gz'}",
    ):
        assert part in message
    assert "\n" not in message
    assert not (tmp_path / "raw").exists()


def test_the_data_directory_is_used_before_any_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place(tmp_path / "own" / "small" / "values.gz", PUBLISHED)
    monkeypatch.setenv("UNLEARNING_DATA", str(tmp_path / "own"))
    assert fetch_file(raw_file(), tmp_path / "raw").read_bytes() == PUBLISHED


@pytest.mark.parametrize("directory", ["own", "raw"])
@pytest.mark.parametrize("damage", ["truncated", "other content"])
def test_a_wrong_file_that_a_person_put_there_is_an_error_at_once(
    server: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directory: str, damage: str
) -> None:
    address, root = server
    place(root / "values.gz", PUBLISHED)
    raw = raw_file(f"{address}/values.gz")
    content = PUBLISHED[:-6] if damage == "truncated" else gzip.compress(CONTENT + b"!")
    path = place(tmp_path / directory / "small" / "values.gz", content)
    monkeypatch.setenv("UNLEARNING_DATA", str(tmp_path / "own"))
    with pytest.raises(DataError) as caught:
        fetch_file(raw, tmp_path / "raw")
    if damage == "truncated":
        digests = hashlib.md5(content).hexdigest(), raw.md5
    else:
        digests = hashlib.sha256(CONTENT + b"!").hexdigest(), raw.sha256
    for part in (str(path), *digests):
        assert part in str(caught.value)
    assert path.read_bytes() == content
    assert directory == "raw" or not (tmp_path / "raw").exists()


def test_a_file_in_place_is_left_alone(tmp_path: Path) -> None:
    path = place(tmp_path / "raw" / "small" / "values.gz", gzip.compress(CONTENT, 1, mtime=7))
    before = path.stat()
    assert fetch_file(raw_file(), tmp_path / "raw") == path
    assert path.stat() == before


@pytest.mark.parametrize("config", ["", "[core]\n    analytics = false\n[cache]\n    dir = ../elsewhere\n"])
def test_the_dvc_cache_is_looked_into(tmp_path: Path, config: str) -> None:
    raw = raw_file()
    place(tmp_path / ".dvc" / "config", config.encode())
    cache = tmp_path / ("elsewhere" if config else ".dvc/cache")
    place(cache / "files" / "md5" / raw.md5[:2] / raw.md5[2:], PUBLISHED)
    assert fetch_file(raw, tmp_path / "data" / "raw").read_bytes() == PUBLISHED


def test_a_damaged_dvc_cache_is_not_used(tmp_path: Path) -> None:
    raw = raw_file()
    place(tmp_path / ".dvc/cache/files/md5" / raw.md5[:2] / raw.md5[2:], PUBLISHED[:-6])
    with pytest.raises(DataError, match="the DVC cache is truncated or damaged"):
        fetch_file(raw, tmp_path / "data" / "raw")


def test_an_unreadable_dvc_configuration_is_named(tmp_path: Path) -> None:
    place(tmp_path / ".dvc" / "config", b"no section")
    with pytest.raises(DataError, match="the DVC configuration cannot be read"):
        fetch_file(raw_file(), tmp_path / "data" / "raw")


def test_a_lost_gzip_header_is_restored_only_where_that_gives_the_published_file() -> None:
    header = b"\x1f\x8b\x08\x08\x01\x02\x03\x04\x00\x03values\x00"
    published = header + PUBLISHED[10:]
    raw = replace(raw_file(), md5=hashlib.md5(published).hexdigest(), gzip_header=header)
    assert gzip.decompress(published) == CONTENT
    assert as_published(raw, PUBLISHED) == published
    other = gzip.compress(CONTENT + b"!", mtime=0)
    assert as_published(raw, other) == other
    assert as_published(raw_file(), PUBLISHED) == PUBLISHED


def test_a_directory_that_cannot_be_made_is_a_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place(tmp_path / "own" / "small" / "values.gz", PUBLISHED)
    monkeypatch.setenv("UNLEARNING_DATA", str(tmp_path / "own"))
    in_the_way = place(tmp_path / "raw", b"a file where the directory should be")
    with pytest.raises(StorageError, match="cannot write"):
        fetch_file(raw_file(), in_the_way)


ARCHIVE = gzip.compress(b"an archive of original records")
COPY = b"an archive of less exact records"


def archive(*addresses: str) -> RawFile:
    def sha256(content: bytes) -> str:
        return hashlib.sha256(content).hexdigest()

    md5 = hashlib.md5(ARCHIVE).hexdigest()
    copy = RawFile("small/copy.zip", sha256(COPY), hashlib.md5(COPY).hexdigest(), ())
    return RawFile("small/archive.tar.gz", sha256(ARCHIVE), md5, addresses, lossy_copy=copy)


def test_an_archive_is_checked_as_it_is(tmp_path: Path) -> None:
    path = place(tmp_path / "small" / "archive.tar.gz", ARCHIVE)
    assert fetch_file(archive(), tmp_path) == path
    path.write_bytes(gzip.compress(b"another archive"))
    with pytest.raises(DataError, match=r"the SHA-256 of its content is"):
        fetch_file(archive(), tmp_path)


@pytest.mark.parametrize("directory", ["own", "raw"])
def test_a_lossy_copy_at_hand_saves_the_download(
    server: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directory: str
) -> None:
    address, root = server
    place(root / "archive.tar.gz", ARCHIVE)
    raw = archive(f"{address}/archive.tar.gz")
    monkeypatch.setenv("UNLEARNING_DATA", str(tmp_path / "own"))
    place(tmp_path / directory / "small" / "copy.zip", COPY)
    path = fetch_file(raw, tmp_path / "raw")
    assert path == tmp_path / "raw" / "small" / "copy.zip"
    assert path.read_bytes() == COPY
    assert in_place(raw, tmp_path / "raw") == raw.lossy_copy


@pytest.mark.parametrize("source", ["own", "DVC", "network"])
def test_the_original_is_taken_where_it_can_be_had(
    server: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    address, root = server
    raw = archive(f"{address}/archive.tar.gz")
    places = {
        "own": tmp_path / "own" / raw.path,
        "DVC": tmp_path / ".dvc" / "cache" / "files" / "md5" / raw.md5[:2] / raw.md5[2:],
        "network": root / "archive.tar.gz",
    }
    place(places[source], ARCHIVE)
    if source != "network":
        place(tmp_path / "raw" / "small" / "copy.zip", COPY)
    (tmp_path / ".dvc").mkdir(exist_ok=True)
    monkeypatch.setenv("UNLEARNING_DATA", str(tmp_path / "own"))
    path = fetch_file(raw, tmp_path / "raw")
    assert path == tmp_path / "raw" / "small" / "archive.tar.gz"
    assert in_place(raw, tmp_path / "raw") == raw


def test_a_damaged_lossy_copy_is_an_error_at_once(tmp_path: Path) -> None:
    place(tmp_path / "small" / "copy.zip", COPY + b"!")
    with pytest.raises(DataError, match=r"copy\.zip is not the published small/copy\.zip"):
        fetch_file(archive(), tmp_path)


def test_without_the_original_the_lossy_copy_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"archive\.tar\.gz could not be obtained.*small/copy\.zip works, too, but is lossy"
    ):
        fetch_file(archive(), tmp_path)
    assert in_place(archive(), tmp_path) == archive()


def test_the_manifest_says_that_the_lossy_copy_was_taken(tmp_path: Path) -> None:
    data_set = replace(TEN_CLASSES, raw_files=(archive(),))
    place(tmp_path / "small" / "copy.zip", COPY)
    write_manifest(data_set, tmp_path, tmp_path / "manifest.json")
    assert '"small/copy.zip"' in (tmp_path / "manifest.json").read_text()
    place(tmp_path / "small" / "archive.tar.gz", ARCHIVE)
    write_manifest(data_set, tmp_path, tmp_path / "manifest.json")
    assert '"small/archive.tar.gz"' in (tmp_path / "manifest.json").read_text()


def test_every_data_set_has_its_own_name_and_either_raw_files_or_a_package_with_a_digest() -> None:
    assert len({data_set.name for data_set in DATA_SETS}) == len(DATA_SETS)
    for data_set in DATA_SETS:
        assert bool(data_set.raw_files) != bool(data_set.package)
        assert bool(data_set.package) == (data_set.content_sha256 is not None)


def test_digits_need_no_file_and_an_unknown_data_set_is_refused(tmp_path: Path) -> None:
    assert fetch(DIGITS, tmp_path) == []
    with pytest.raises(
        ParameterError, match="'digit'; known data sets are digits, mnist-3-vs-8, mnist-10, adult, adult-14"
    ):
        find("digit")


def test_the_manifest_depends_on_the_content_alone(tmp_path: Path) -> None:
    data_set = replace(ADULT, raw_files=(raw_file(),))
    manifests = []
    for level in (1, 9):
        place(tmp_path / "small" / "values.gz", gzip.compress(CONTENT, level, mtime=level))
        write_manifest(data_set, tmp_path, tmp_path / f"{level}.json")
        manifests.append((tmp_path / f"{level}.json").read_bytes())
    assert manifests[0] == manifests[1]
    assert raw_file().sha256.encode() in manifests[0]
    place(tmp_path / "small" / "values.gz", gzip.compress(CONTENT + b"!"))
    with pytest.raises(DataError, match="is not the published"):
        write_manifest(data_set, tmp_path, tmp_path / "wrong.json")
    assert not (tmp_path / "wrong.json").exists()


def test_the_manifest_of_digits_names_its_source(tmp_path: Path) -> None:
    write_manifest(DIGITS, tmp_path, tmp_path / "manifest.json")
    text = (tmp_path / "manifest.json").read_text()
    assert "scikit-learn (embedded)" in text
    assert "f6d9e39f37dc45d327f6db33428ee58970ccceabb2535a5c179de35886b70443" in text
