"""Hashes of files: a process remembers some of them, and never a number without end."""

import os

from flmarket_sim.storage import sealed_files


def test_a_process_remembers_a_bounded_number_of_hashes(tmp_path, monkeypatch):
    monkeypatch.setattr(sealed_files, "_known", {})
    monkeypatch.setattr(sealed_files, "MOST_KNOWN", 3)
    monkeypatch.setattr(sealed_files, "SETTLED", -1.0)  # files of this moment are remembered, too
    for number in range(8):
        path = tmp_path / str(number)
        path.write_text(f"content {number}")
        os.utime(path, (1, 1))
        first = sealed_files.file_hash(path)
        assert sealed_files.file_hash(path) == first and 1 <= len(sealed_files._known) <= 3
