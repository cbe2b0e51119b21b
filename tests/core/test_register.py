"""One data set, one budget: the register knows files and tables by what stays with them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from expmech.ledger import Entry, Ledger, LedgerError, register
from expmech.ledger.file import begin, connect, write_ledger
from expmech.tables.sources.opening import canonical_host, open_frame, open_source
from expmech.tables.sources.source import Source


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the register, which every test has to itself."""
    place = tmp_path / "register"
    monkeypatch.setenv("EXPMECH_STATE", str(place))
    return place


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return written(tmp_path / "data" / "survey.csv")


def written(path: Path, text: str = "age\n1\n2\n") -> Path:
    path.write_text(text)
    return path


def opened(path: Path) -> Source:
    with closing(open_source(str(path))) as source:
        return source


def make(ledger: Path, source: Source, **more: Any) -> Ledger:
    return Ledger.create(
        ledger, data_set=source.identity, members=source.members, epsilon=1, **more
    )


def test_one_file_has_one_budget_by_every_name(tmp_path: Path) -> None:
    table = tmp_path / "survey.csv"
    table.write_text("age\n1\n2\n")
    (tmp_path / "link.csv").symlink_to(table)
    (tmp_path / "hard.csv").hardlink_to(table)
    source = open_source(str(table))
    named = {open_source(str(tmp_path / name)).identity for name in ("link.csv", "sur*.csv")}
    assert named == {source.identity}
    options: dict[str, Any] = {"epsilon": 1, "data_set": source.identity}
    Ledger.create(tmp_path / "one", members=source.members, **options)
    for name in ("survey.csv", "link.csv", "hard.csv", "sur*.csv"):
        again = open_source(str(tmp_path / name))
        with pytest.raises(LedgerError, match="has a budget already, in"):
            Ledger.create(tmp_path / "two", members=again.members, **options)
        assert not (tmp_path / "two").exists()
    (tmp_path / "one").unlink()
    with pytest.raises(LedgerError, match="which is not there"):
        Ledger.create(tmp_path / "two", members=source.members, **options)
    Ledger.create(tmp_path / "two", members=source.members, again=True, **options)
    (tmp_path / "other.csv").write_text("age\n1\n")
    other = open_source(str(tmp_path / "other.csv"))
    Ledger.create(tmp_path / "three", members=other.members, epsilon=1, data_set=other.identity)


def test_a_link_is_the_file_it_leads_to_and_not_the_one_that_had_its_name(tmp_path: Path) -> None:
    """Else what is released of a new file would be charged to the budget of an old one."""
    current, newer = tmp_path / "current.csv", tmp_path / "newer.csv"
    for table in (current, newer):
        table.write_text("age\n1\n2\n")
    name = open_source(str(current)).identity
    Ledger.create(tmp_path / "ledger", data_set=name, epsilon=1)
    Ledger(tmp_path / "ledger", data_set=open_source(str(current)).names)
    current.rename(tmp_path / "older.csv")
    current.symlink_to(newer)
    with pytest.raises(LedgerError, match="belongs to another data set"):
        Ledger(tmp_path / "ledger", data_set=open_source(str(current)).names)


def moved(table: Path) -> Path:
    return table.rename(table.with_name("renamed.csv"))


def moved_with_a_link_left(table: Path) -> Path:
    table.with_name("left.csv").hardlink_to(table)
    return moved(table)


def moved_by_its_folder(table: Path) -> Path:
    return table.parent.rename(table.parent.with_name("elsewhere")) / table.name


def moved_and_edited_in_place(table: Path) -> Path:
    return written(moved(table), "age\n1\n2\n3\n")


MOVES = [moved, moved_with_a_link_left, moved_by_its_folder, moved_and_edited_in_place]


@pytest.mark.parametrize("move", MOVES)
def test_a_file_that_is_moved_keeps_its_budget(
    move: Callable[[Path], Path], table: Path, tmp_path: Path
) -> None:
    """No second ledger is made for it, and the first one knows it under its new name."""
    before = opened(table)
    make(tmp_path / "one", before)
    after = opened(move(table))
    assert after.identity != before.identity
    with pytest.raises(LedgerError, match=f"has a budget already under the name {before.identity}"):
        make(tmp_path / "two", after)
    assert not (tmp_path / "two").exists()
    ledger = Ledger(tmp_path / "one", data_set=after.names, members=after.members)
    assert ledger.data_set == before.identity
    other = opened(written(tmp_path / "other.csv"))
    with pytest.raises(LedgerError, match="belongs to another data set"):
        Ledger(tmp_path / "one", data_set=other.names, members=other.members)
    make(tmp_path / "three", other)


def test_files_of_which_one_is_new_are_another_data_set(table: Path, tmp_path: Path) -> None:
    make(tmp_path / "one", opened(table))
    place = moved(table)
    written(place.with_name("rename.csv"))
    both = opened(place.with_name("rename*.csv"))
    with pytest.raises(LedgerError, match="belongs to another data set"):
        Ledger(tmp_path / "one", data_set=both.names, members=both.members)


def test_a_ledger_that_is_moved_with_its_data_goes_on(table: Path) -> None:
    make(table.with_name("ledger"), opened(table))
    place = moved_by_its_folder(table)
    source = opened(place)
    ledger = Ledger(place.with_name("ledger"), data_set=source.names, members=source.members)
    ledger.charge(epsilon="0.1")
    Ledger(place.with_name("ledger"), data_set=source.names, members=source.members)


def test_a_file_that_takes_the_inode_of_a_deleted_one_is_new(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of birth tells them apart; the path still stands for the data set."""
    born = {"now": 1}
    monkeypatch.setattr(register, "_birth", lambda path, found: born["now"])
    make(tmp_path / "one", opened(table))
    place = moved(table)
    born["now"] = 2
    make(tmp_path / "two", opened(place))
    with pytest.raises(LedgerError, match="has a budget already, in"):
        make(tmp_path / "three", opened(written(table)))


def test_without_a_time_of_birth_size_and_last_change_tell(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on some network file systems: a file that was moved, or linked, or that is another."""
    monkeypatch.setattr(register, "_birth", lambda path, found: None)
    make(tmp_path / "one", opened(table))
    link = table.with_name("link.csv")
    link.hardlink_to(table)
    written(table, "age\n1\n2\n3\n")  # edited in place: its path still has the inode
    with pytest.raises(LedgerError, match="has a budget already under the name"):
        make(tmp_path / "two", opened(link))
    link.unlink()
    make(tmp_path / "two", opened(table), again=True)
    place = moved(table)
    with pytest.raises(LedgerError, match="has a budget already under the name"):
        make(tmp_path / "three", opened(place))
    make(tmp_path / "three", opened(written(place, "a file that took the inode\n1\n")))


def test_linux_tells_when_a_file_was_made(table: Path) -> None:
    found = os.stat(table)
    if register._birth(str(table), found) is None:
        pytest.skip("this file system does not tell the time of birth")
    kinds = [member.partition(" ")[0] for member in register.file_members(str(table))]
    assert kinds == ["file", "birth"]
    born = register._birth(str(table), found)
    os.utime(table, (1, 1))
    assert register._birth(str(table), os.stat(table)) == born
    other = written(table.with_name("other.csv"))
    assert register.file_members(str(other))[1] != register.file_members(str(table))[1]


def killed(work: Callable[[], object]) -> None:
    """Run in a child that ends by itself on the way."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.parametrize("is_written", [False, True])
def test_a_kill_while_a_ledger_is_made_opens_no_second_budget(
    is_written: bool, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim comes first: killed before the ledger is there or after, the data set is taken."""
    source = opened(table)

    def ending(*parts: Any) -> None:
        if is_written:
            write_ledger(*parts)
        os._exit(9)

    with monkeypatch.context() as patch:
        patch.setattr("expmech.ledger.ledger.write_ledger", ending)
        killed(lambda: make(tmp_path / "one", source))
    assert (tmp_path / "one").exists() == is_written
    told = "in .*one: what two" if is_written else "stopped while it made it.*--again makes a new"
    for name in ("one", "two") if not is_written else ("two",):
        with pytest.raises(LedgerError, match=told):
            make(tmp_path / name, source)
        assert not (tmp_path / name).exists()
    make(tmp_path / "two", source, again=True)


def test_a_ledger_that_cannot_be_written_leaves_no_claim(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = opened(table)

    def full(*parts: Any) -> None:
        raise LedgerError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr("expmech.ledger.ledger.write_ledger", full)
        with pytest.raises(LedgerError, match="disk full"):
            make(tmp_path / "one", source)
    make(tmp_path / "two", source)
    with monkeypatch.context() as patch:
        patch.setattr("expmech.ledger.ledger.write_ledger", full)
        with pytest.raises(LedgerError, match="disk full"):
            make(tmp_path / "three", source, again=True)
    with pytest.raises(LedgerError, match=f"in {tmp_path / 'two'}: what two"):
        make(tmp_path / "three", source)


def test_stopped_after_a_ledger_got_its_name_the_claim_stands(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*parts: Any) -> None:
        write_ledger(*parts)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("expmech.ledger.ledger.write_ledger", stopped)
        with pytest.raises(KeyboardInterrupt):
            make(tmp_path / "one", opened(table))
    with pytest.raises(LedgerError, match="has a budget already"):
        make(tmp_path / "two", opened(table))


def test_of_two_ledgers_that_are_made_at_once_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have looked and found no other: the register decides."""
    options: dict[str, Any] = {"epsilon": 1, "data_set": "t"}
    whole = register._draft

    def overtaken(place: Path, note: Any) -> Path:
        if note["member"] == "table b":
            monkeypatch.setattr(register, "_draft", whole)
            Ledger.create(tmp_path / "one", members=["table b"], **options)
        return whole(place, note)

    monkeypatch.setattr(register, "_draft", overtaken)
    with pytest.raises(LedgerError, match=r"has a budget already, in .*one"):
        Ledger.create(tmp_path / "two", members=["table a", "table b"], **options)
    assert not (tmp_path / "two").exists()
    Ledger.create(tmp_path / "three", members=["table a"], **options)  # not held by the second


def test_a_note_that_cannot_be_read_is_not_passed_over(
    table: Path, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = opened(table)
    make(tmp_path / "one", source)

    def forbidden(self: Path, **options: str) -> str:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", forbidden)
        with pytest.raises(LedgerError, match=r"cannot be read at .*Permission denied"):
            make(tmp_path / "two", source)
    for note in folder.iterdir():
        note.write_text("")
    with pytest.raises(LedgerError, match="damaged"):
        make(tmp_path / "two", source)
    assert not (tmp_path / "two").exists()


def test_a_deleted_ledger_of_a_frame_opens_no_second_budget(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    with closing(open_frame(pyarrow.table({"age": [1, 2]}), name="visits")) as source:
        make(tmp_path / "one", source)
        (tmp_path / "one").unlink()
        with pytest.raises(LedgerError, match="which is not there"):
            make(tmp_path / "one", source)


@pytest.mark.parametrize(
    ("names", "host"),
    [
        (("db.example", "DB.Example", "db.example."), "db.example"),
        (
            ("localhost", "LOCALHOST.", "127.0.0.1", "127.1", "::1", "[::1]", "::ffff:127.0.0.1"),
            None,
        ),
        (("192.0.2.7", "::ffff:192.0.2.7", "0xc0000207", "192.0.519"), "192.0.2.7"),
        (("2001:DB8::1", "[2001:db8:0:0::1]", "2001:db8::1%eth0"), "2001:db8::1"),
        (("bücher.example", "xn--bcher-kva.example."), "xn--bcher-kva.example"),
    ],
)
def test_a_host_has_one_name(
    names: tuple[str, ...], host: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolved(name: str, port: None) -> list[Any]:
        if name != "localhost":
            raise OSError
        return [(0, 0, 0, "", ("127.0.0.1", 0))]

    monkeypatch.setattr("socket.getaddrinfo", resolved)
    assert {canonical_host(name) for name in names} == {host or "localhost"}


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_only_the_owner_reads_a_ledger_and_the_register(
    open_umask: None, table: Path, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a umask that lets everybody read: also the drafts, and the journal of a charge."""
    modes: list[int] = []
    link = os.link

    def linked(draft: Path, place: Path) -> None:
        modes.append(mode(Path(draft)))
        link(draft, place)

    monkeypatch.setattr(os, "link", linked)
    ledger = tmp_path / "ledger"
    make(ledger, opened(table))
    assert mode(folder) == 0o700 and mode(ledger) == 0o600 and set(modes) == {0o600}
    assert {mode(note) for note in folder.iterdir()} == {0o600}
    assert mode_of_journal(ledger) == 0o600


def mode_of_journal(ledger: Path) -> int:
    with connect(ledger) as connection:
        begin(connection)
        connection.execute("INSERT INTO outbox SELECT 1, '', '' WHERE 0")
        connection.execute("UPDATE sqlite_sequence SET seq = seq")
        connection.execute("CREATE TABLE scratch (one)")
        return mode(ledger.with_name(f"{ledger.name}-journal"))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_a_stewards_own_mode_survives_what_is_written_later(
    table: Path, tmp_path: Path, folder: Path
) -> None:
    ledger = make(tmp_path / "ledger", opened(table))
    shared = [ledger.path, *folder.iterdir()]
    for path in shared:
        path.chmod(0o640)
    charge = ledger.charge_all([Entry(epsilon="0.1", run="release")])[0]
    ledger.deliver(charge.number, "{}")
    make(tmp_path / "second", opened(table), again=True)
    assert {mode(path) for path in shared} == {0o640}
    assert mode_of_journal(ledger.path) == 0o640
