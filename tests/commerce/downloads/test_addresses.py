from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from refusals import refused

from diptych.commerce.downloads import read_wanted
from diptych.commerce.downloads.fetching import (
    Trouble,
    host_of,
    is_public,
    origin_of,
    proper_address,
    retry_after,
)
from diptych.commerce.downloads.robots import RobotsRules
from diptych.core.errors import DataError


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("http://x.org", "http://x.org/"),
        (" HTTPS://X.org:8443/a b.jpg?q=ä#top ", "https://x.org:8443/a%20b.jpg?q=%C3%A4"),
        ("http://x.org/a%20b._AC_UL320_.jpg", "http://x.org/a%20b._AC_UL320_.jpg"),
        ("http://bücher.example/ü.png", "http://xn--bcher-kva.example/%C3%BC.png"),
        ("http://[2001:db8::1]/a", "http://[2001:db8::1]/a"),
        ("http://x.org/a\r\nHost: y", "http://x.org/aHost:%20y"),
    ],
)
def test_addresses_are_made_proper(given: str, asked: str) -> None:
    assert proper_address(given) == asked
    assert origin_of(asked) == asked.split("//")[0] + "//" + host_of(asked)


@pytest.mark.parametrize(
    "given",
    [
        *("", "x.org/a.jpg", "//x.org/a", "ftp://x.org/a", "file:///etc/passwd", "data:image/png;base64,AA"),
        *("http://", "http://u:p@x.org/", "http://x.org:port/", "http://[::1/", "http://x.org/\ud800"),
        *("http://x.org/?\ud800", "http://" + "a" * 70 + ".org/"),
    ],
)
def test_other_addresses_are_not_followed(given: str) -> None:
    with pytest.raises(Trouble) as caught:
        proper_address(given)
    assert caught.value.kind == "address"
    assert ":p@" not in caught.value.reason


@pytest.mark.parametrize(
    "number",
    [
        *("127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "100.64.0.1"),
        *("0.0.0.0", "224.0.0.1", "::1", "fe80::1%eth0", "fc00::1", "::ffff:127.0.0.1"),
        *("2002:7f00:1::", "::127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b:1::1", "fec0::1"),
    ],
)
def test_private_numbers(number: str) -> None:
    assert not is_public(number)


@pytest.mark.parametrize("number", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"])
def test_public_numbers(number: str) -> None:
    assert is_public(number)


def test_pauses_that_hosts_ask_for() -> None:
    assert retry_after("120") == 120
    assert retry_after("soon") is None
    assert retry_after("") is None
    assert retry_after("²") is None
    later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    assert 3500 < (retry_after(later) or 0) <= 3600
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0


def test_lists_that_cannot_be_read(tmp_path: Path) -> None:
    refused(DataError, "does not exist", read_wanted, tmp_path / "none.csv")
    file = tmp_path / "list.csv"
    file.write_text("name,url\na,http://x/1\n")
    refused(DataError, "columns name, url", read_wanted, file)
    file.write_text("id,address\n,http://x/1\n")
    refused(DataError, "line 2: no id", read_wanted, file)
    file.write_text("\ufeffid,address,more\na,http://x/1,z\nb,\n")
    assert [one.id for one in read_wanted(file)] == ["a"]


EXAMPLE = """\ufeffUser-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/   # everything, but
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: BarBot/1.0
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""


@pytest.mark.parametrize(
    ("agent", "place", "allowed"),
    [
        ("diptych", "/a.gif", False),
        ("diptych", "/a.gif?x=1", True),
        ("diptych", "/example/x", False),
        ("diptych", "/publications/a.gif", True),  # the longer rule
        ("diptych", "/", True),
        ("FooBot", "/x", False),
        ("foobot", "/example/page.html", True),
        ("barbot", "/example/page.html", False),
        ("bazbot", "/example/page.html", False),
        ("bazbot", "/example/a.gif", True),  # its own group alone
        ("quxbot", "/example/a.gif", True),
    ],
)
def test_the_example_of_the_rfc(agent: str, place: str, allowed: bool) -> None:
    assert RobotsRules(EXAMPLE, agent).allows(place) is allowed


@pytest.mark.parametrize(
    ("rule", "place", "matches"),
    [
        ("/*?", "/a?b", True),
        ("/a*c$", "/abcbc", True),
        ("/a$", "/ab", False),
        ("/%7Ejoe", "/~joe/x", True),
        ("/a%3cd", "/a%3Cd", True),
        ("/é", "/%C3%A9", True),
        ("//[", "//[", True),  # Python's own parser fails on it
        ("", "/a", False),
    ],
)
def test_patterns(rule: str, place: str, matches: bool) -> None:
    assert RobotsRules(f"User-agent: *\nDisallow: {rule}", "diptych").allows(place) is not matches


@pytest.mark.parametrize(
    "text", ["", "<html>not found</html>", "Disallow: /", "\0\0:\n::", "User-agent\nDisallow: /"]
)
def test_what_is_no_robots_txt_allows_everything(text: str) -> None:
    rules = RobotsRules(text, "diptych")
    assert rules.allows("/a")
    assert rules.delay == 0


def test_a_file_of_many_agents_and_rules_costs_no_more_than_its_length() -> None:
    many = "".join(f"User-agent: a{chr(97 + i % 26)}\n" for i in range(15_000)) + "Disallow: /\n" * 15_000
    assert RobotsRules(f"{many}User-agent: *\nDisallow: /b", "diptych").allows("/a")
