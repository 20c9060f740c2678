"""What is read of the files of ``conf/`` is what Hydra composes of them."""

import pytest

from servesim.config.compositions import composed
from servesim.config.groups import Groups
from servesim.config.nested import value_at
from servesim.report.dashboard.option_files import Chosen, settings

GROUPS = Groups.of(None)
#: Where the values of groups go, beside those whose name says it, and what must be chosen first.
BEFORE = {"workload/turns": ("workload=sessions",)}
READ = (
    *("scheduler", "scheduler/queue_order", "scheduler/speculation", "scheduler/offload"),
    *("router", "admission", "client", "workload", "workload/arrivals", "workload/lengths", "workload/turns"),
)


@pytest.mark.parametrize("group", READ)
def test_the_values_of_every_option_are_those_that_hydra_composes(group: str) -> None:
    place, compared = group.split("/"), 0
    for option in GROUPS.options(group):
        composition, problems = composed([*BEFORE.get(group, ()), f"{group}={option}"])
        assert (composition is not None) == (not problems)
        if option == "none" or composition is None:
            continue  # its file says that there is nothing
        found = settings(group, option)
        assert found
        for key, value in found.items():
            chosen = composition.choices.get(f"{group}/{key}")
            here = value_at(composition.values, [*place, *key.split(".")])
            is_name = chosen is not None or isinstance(here, dict)
            assert (chosen if chosen is not None else value) == value
            assert is_name or here == value or value == "???"
            compared += not is_name
    assert compared or group == "scheduler/offload"


def test_an_option_that_is_not_there_says_nothing() -> None:
    assert settings("router", "bogus") == {}
    assert settings("bogus", "router") == {}
    assert settings("router", "../slo/interactive") == {}, "a URL reads no other files"


CHOSEN = Chosen(
    {
        "workload": ("workload", "sessions"),
        "workload.lengths": ("workload/lengths", "fixed"),
        "scheduler": ("scheduler", "disaggregated"),
        "scheduler.speculation": ("scheduler/speculation", "draft_model"),
    }
)


@pytest.mark.parametrize(
    ("key", "there", "own"),
    [
        ("workload.lengths.input", True, 512),
        ("workload.lengths.range_ratio", False, None),
        ("workload.tools.calls", True, 0.0),
        ("workload.tenants.anybody.share", True, None),
        ("workload/arrivals", True, "poisson"),
        ("scheduler.max_num_seqs", True, 1024),
        ("scheduler.batch_size", False, None),
        ("scheduler.speculation.model", True, "llama3.1-8b"),
        ("scheduler.speculation.draft_vocab_size", False, None),
        ("seed", True, None),
        ("slo.ttft_s", True, None),
    ],
)
def test_the_chosen_options_say_which_keys_are_there(key: str, there: bool, own: object) -> None:
    assert (CHOSEN.has(key), CHOSEN.own(key)) == (there, own)
