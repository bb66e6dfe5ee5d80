"""When a run stands still."""

import pytest

from signedstep.stall import Stall


@pytest.mark.parametrize(("f_factor", "g_factor"), [(1.0, 0.98), (1 - 1e-14, 1.0)])
def test_slow_progress_is_not_a_stall(f_factor, g_factor):
    """Neither f nor the gradient falls enough in one iteration, but in ten they do."""
    stall, f, g = Stall(1.0, 1.0, 2.0**-52), 1.0, 1.0
    for _ in range(100):
        f, g = f * f_factor, g * g_factor
        assert not stall.sees(f, g, 1.0)


def test_no_progress_for_ten_iterations_is_a_stall():
    stall = Stall(1.0, 1.0, 2.0**-52)
    assert [stall.sees(1.0 - 1e-16, 0.95, 1.0) for _ in range(10)] == [False] * 9 + [True]


def test_steps_that_grow_are_no_stall():
    """As where a region comes out of a narrow place: f will fall once they are long enough to be seen in it."""
    stall = Stall(1.0, 1.0, 2.0**-52)
    assert not stall.sees(0.9, 1.0, 1e-13)
    assert not any([stall.sees(0.9, 1.0, 1e-13 * 2.0**k) for k in range(1, 40)])  # noqa: C419
    assert [stall.sees(0.9, 1.0, 0.05) for _ in range(10)] == [False] * 9 + [True]


def test_two_searches_that_fail_and_find_next_to_nothing_are_a_stall():
    """With differences for a gradient; of an exact one a search may fail at a kink, and the next one go on."""
    stall = Stall(1.0, 1.0, 2.0**-52, resolution=1e-8)
    assert not stall.sees(1 - 1e-9, 1.0, 1.0, ok=False)
    assert stall.sees(1 - 2e-9, 1.0, 1.0, ok=False)
    stall = Stall(1.0, 1.0, 2.0**-52, resolution=1e-8)
    assert not any([stall.sees(1 - 1e-5 * k, 1.0, 1.0, ok=False) for k in range(1, 20)])  # noqa: C419
    stall = Stall(1.0, 1.0, 2.0**-52)
    assert not any([stall.sees(1 - 1e-9 * k, 1.0, 1.0, ok=False) for k in range(1, 20)])  # noqa: C419


def test_steps_below_the_resolution_of_a_gradient_do_not_count():
    stall = Stall(1.0, 1.0, 2.0**-52, resolution=1e-8)
    assert [stall.sees(1 - 1e-3 * k, 0.5**k, 1e-9) for k in range(1, 11)] == [False] * 9 + [True]
    assert not stall.sees(0.9, 0.1, 1e-9)  # unless f falls by more
    assert stall.idle == 0


def test_a_stall_deserves_a_restart_unless_one_has_just_led_nowhere():
    stall = Stall(1.0, 1.0, 2.0**-52)
    assert stall.deserves_a_restart()
    assert not stall.deserves_a_restart()
    stall.sees(0.9995, 1.0, 1.0)
    assert not stall.deserves_a_restart()
    stall.sees(0.99, 1.0, 1.0)
    assert stall.deserves_a_restart()
