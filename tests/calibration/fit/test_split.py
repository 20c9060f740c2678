"""The split is a fixed hash of the shape: the same rows are held out for everybody, a fifth of them."""

import numpy as np
import pandas as pd

from calibration.fit.split import SPLITS, folds, held_out

SHAPE = ("m", "n")


def rows(count: int = 3000) -> pd.DataFrame:
    return pd.DataFrame({"m": np.arange(count), "n": np.arange(count) % 30, "seconds": 1.0})


def test_the_same_rows_are_held_out_whatever_stands_beside_them() -> None:
    table = rows()
    shuffled = table.sample(frac=0.5, random_state=1)
    assert (held_out(table, SHAPE)[shuffled.index] == held_out(shuffled, SHAPE)).all()
    assert (held_out(table.assign(seconds=2.0), SHAPE) == held_out(table, SHAPE)).all()


def test_rows_held_out_in_the_first_split_by_name() -> None:
    """These are written in every profile: a change of the hash would change all of them."""
    out = held_out(rows(40), SHAPE)[:, 0]
    assert np.flatnonzero(out).tolist() == [1, 5, 6, 19, 29]


def test_a_fifth_is_held_out_in_each_split_and_splits_differ() -> None:
    out = held_out(rows(), SHAPE)
    assert out.shape == (3000, SPLITS)
    assert np.abs(out.mean(axis=0) - 0.2).max() < 0.03
    assert np.abs(np.corrcoef(out.T) - np.eye(SPLITS)).max() < 0.1


def test_a_whole_shape_is_in_one_fold() -> None:
    table = rows()
    fold = folds(table, ["n"])
    assert table.groupby("n").apply(lambda part: len(set(fold[part.index])), include_groups=False).eq(1).all()
    assert len(set(fold)) == 5


def test_few_shapes_are_left_out_one_by_one() -> None:
    assert folds(rows(15), ["m"]).tolist() == list(range(15))
