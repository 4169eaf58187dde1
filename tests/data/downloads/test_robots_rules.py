"""robots.txt by RFC 9309: its own examples, wildcards, and files that are none."""

from __future__ import annotations

import pytest

from diptych.data.downloads.robots import RobotsRules

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
        ("/*?", "/a", False),
        ("/a*c$", "/abcbc", True),
        ("/a*c$", "/abcd", False),
        ("/a*a$", "/a", False),
        ("/a$", "/a", True),
        ("/a$", "/ab", False),
        ("/fish*", "/fishy", True),
        ("/%7Ejoe", "/~joe/x", True),
        ("/a%3cd", "/a%3Cd", True),
        ("/é", "/%C3%A9", True),
        ("//[", "//[", True),  # Python's own parser fails on it
        ("", "/a", False),
        ("*", "/", True),
    ],
)
def test_patterns(rule: str, place: str, matches: bool) -> None:
    assert RobotsRules(f"User-agent: *\nDisallow: {rule}", "diptych").allows(place) is not matches


def test_groups_of_one_name_are_one_and_of_two_as_long_the_one_that_allows_counts() -> None:
    rules = RobotsRules(
        "User-agent: *\nDisallow: /a\nUser-agent: x\nUser-agent: *\nAllow: /a\nDisallow: /b", "diptych"
    )
    assert [rules.allows(place) for place in ("/a", "/b", "/c")] == [True, False, True]


@pytest.mark.parametrize(
    ("value", "delay"),
    [
        ("2", 2.0),
        ("0.5", 0.5),
        ("-1", 0.0),
        ("nan", 0.0),
        ("²", 0.0),
        ("soon", 0.0),
        ("9" * 400, float("inf")),
    ],
)
def test_delays(value: str, delay: float) -> None:
    assert RobotsRules(f"User-agent: diptych\nCrawl-delay: {value}", "diptych").delay == delay


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
