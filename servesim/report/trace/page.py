"""The page of a trace."""

from __future__ import annotations

from collections.abc import Iterator

from servesim.report.content import Chart, Part, Section, Table
from servesim.report.page import Page
from servesim.report.theme import BLUE, VERMILLION
from servesim.report.trace import charts
from servesim.screen.trace import (
    duration,
    has_prefixes,
    length_headings,
    length_rows,
    notes,
    requests_in_words,
    reuse_in_words,
    sessions_in_words,
    times_in_words,
)
from servesim.workload.description import Description


def trace_page(name: str, description: Description) -> Page:
    """Return the page that describes the trace of a file of this name."""
    lead = [f"Requests: {requests_in_words(description)}."]
    if description.talks is not None:
        lead.append(f"Sessions: {sessions_in_words(description.talks)}.")
    if description.recording.timed:
        lead.append(f"Times: {times_in_words(description)}.")
    if has_prefixes(description):
        lead.append(f"Prefixes: {reuse_in_words(description)}.")
    sections = [
        *([Section("Arrivals", list(_arrivals(description)))] if description.rate_rps else []),
        Section("Lengths", list(_lengths(description))),
        *([Section("Prefixes", list(_prefixes(description)))] if _has_prefixes(description) else []),
    ]
    return Page(name, lead, sections, [*notes(description)])


def _arrivals(description: Description) -> Iterator[Part]:
    width, one = duration(description.bin_s), "session" if description.of_sessions else "request"
    yield Chart(
        "Rate over time",
        charts.rate_figure(description),
        f"{one.capitalize()}s that come in stretches of {width}, per second; the last stretch may be longer.",
        wide=True,
    )
    recording = description.recording
    amounts = (
        ()
        if description.of_sessions
        else (
            ("Tokens in over time", recording.input_tokens, BLUE),
            ("Tokens out over time", recording.output_tokens, VERMILLION),
        )
    )
    for title, tokens, hue in amounts:
        whose = "Tokens of the prompts" if hue == BLUE else "Tokens asked for by the requests"
        caption = f"{whose} that come in stretches of {width}, per second."
        yield Chart(title, charts.tokens_figure(description, tokens, hue), caption)
    at_once = description.same_time
    yield Chart(
        f"Gaps between {one}s",
        charts.gaps_figure(description),
        "Share of the gaps that are at most as long. Dashed: a Poisson process of the same rate."
        + (f" Gaps of 0 s, {at_once:,} of them, have no place on the axis." if at_once else ""),
        wide=True,
    )


def _lengths(description: Description) -> Iterator[Part]:
    yield Chart(
        "Lengths",
        charts.lengths_figure(description),
        "Share of the requests whose prompt, or whose output, has at most so many tokens.",
        wide=True,
    )
    yield Table("Tokens of a request", length_headings(), length_rows(description))


def _has_prefixes(description: Description) -> bool:
    timed = description.rate_rps is not None and not description.of_sessions
    return description.reuse is not None and timed


def _prefixes(description: Description) -> Iterator[Part]:
    yield Chart(
        "Blocks found in an endless cache",
        charts.reuse_figure(description),
        "Share of the blocks of the prompts that, with all blocks before them, were in an earlier prompt.",
        wide=True,
    )
