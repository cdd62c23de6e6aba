"""The file of a checkpoint is checked before it is unpacked; a damaged journal is no short one."""

import numpy as np
import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.eventlog.journal import packed, read_journal
from flmarket_sim.market.checkpoint_file import read_arrays, write_arrays

ARRAYS = {"facts": np.zeros(9, np.uint8), "ledger sold": np.arange(5.0)}


def test_arrays_come_back_and_a_turned_bit_is_found(tmp_path):
    path = tmp_path / "checkpoint.npz"
    write_arrays(path, ARRAYS)
    assert (read_arrays(path)["ledger sold"] == ARRAYS["ledger sold"]).all()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="does not have its hash"):
        read_arrays(path)


def test_foreign_and_compressed_arrays_are_refused_by_name(tmp_path):
    path = tmp_path / "checkpoint.npz"
    np.savez(path, **ARRAYS, weather=np.zeros(3))
    with pytest.raises(ValueError, match="'weather'"):
        read_arrays(path)
    np.savez_compressed(path, **ARRAYS)
    with pytest.raises(ValueError, match="compressed"):
        read_arrays(path)


def test_a_journal_that_is_cut_ends_early_and_one_that_is_damaged_is_refused(tmp_path):
    path, group = tmp_path / "journal-00000", packed(b'{"seq": 3, "kinds": []}\n')
    path.write_bytes(group + group[:10])
    assert read_journal(path, strict=True).seq == 3
    for place in range(8 * len(group)):
        content = bytearray(group)
        content[place // 8] ^= 1 << place % 8
        path.write_bytes(content)
        with pytest.raises(InputError, match="journal-00000 is damaged"):
            read_journal(path, strict=True)
