"""Mechanisms of data and privacy markets that papers of this field compare with. One file each."""
