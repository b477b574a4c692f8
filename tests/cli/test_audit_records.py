"""`privamp audit records`: how pairs are shared out."""

from privamp.audits import records
from privamp.cli.audit.records import _chosen, _pieces


def test_planted_mistakes_are_asked_with_enough_pairs_to_be_found() -> None:
    chosen, _ = _chosen("array sum")
    wanted = dict.fromkeys(chosen, 0)
    for is_planted, place, pairs, _ in _pieces(chosen, 2, 0):
        wanted[is_planted, place] += pairs
    planted = records.planted()
    assert wanted
    for (is_planted, place), pairs in wanted.items():
        assert pairs == (planted[place].quick if is_planted else 2)


def test_a_long_audit_is_cut_into_shares_with_seeds_of_their_own() -> None:
    pieces = _pieces([(False, 3)], 450, 7)
    assert pieces == [(False, 3, 200, 7), (False, 3, 200, 8), (False, 3, 50, 9)]
