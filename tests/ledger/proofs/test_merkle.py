"""Merkle trees against the vectors that implementations of RFC 6962 share, and against every other place and size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.ledger.proofs.merkle import (
    EMPTY,
    consistency_proof,
    inclusion_proof,
    is_consistent,
    is_included,
    leaf_hash,
    root,
)

ENTRIES = ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
LEAVES = [leaf_hash(bytes.fromhex(entry)) for entry in ENTRIES]
ROOTS = (
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)
"""Roots of the trees over the first 1, 2, ..., 8 entries, of the tests of Certificate Transparency."""


def leaves(size: int) -> list[bytes]:
    return [leaf_hash(number.to_bytes(2, "big")) for number in range(size)]


@pytest.mark.parametrize("size", range(1, 9))
def test_roots_are_those_of_certificate_transparency(size: int) -> None:
    assert root(LEAVES[:size]).hex() == ROOTS[size - 1]


def test_an_empty_tree_has_the_hash_of_nothing() -> None:
    assert root([]) == EMPTY
    assert EMPTY.hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_the_inclusion_proof_of_an_entry_is_that_of_certificate_transparency() -> None:
    assert [each.hex() for each in inclusion_proof(LEAVES, 5)] == [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ]


def test_the_consistency_proof_of_six_and_eight_is_that_of_certificate_transparency() -> None:
    assert [each.hex() for each in consistency_proof(LEAVES, 6)] == [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ]


def test_every_leaf_is_included_at_its_own_place_only() -> None:
    for size in range(1, 34):
        tree = leaves(size)
        for index in range(size):
            proof = inclusion_proof(tree, index)
            assert len(proof) <= (size - 1).bit_length()
            places = [
                place for place in range(-1, size + 1) if is_included(tree[index], place, size, proof, root(tree))
            ]
            assert places == [index]


def test_every_tree_begins_with_every_smaller_one_and_with_no_other() -> None:
    for size in range(1, 34):
        tree = leaves(size)
        for earlier in range(1, size + 1):
            proof = consistency_proof(tree, earlier)
            assert is_consistent(earlier, root(tree[:earlier]), size, root(tree), proof)
            changed = [leaf_hash(b"another"), *tree[1:]]
            assert not is_consistent(earlier, root(changed[:earlier]), size, root(tree), proof)
            assert not is_consistent(earlier, root(tree[:earlier]), size, root(changed), proof)


@given(st.integers(1, 200), st.data())
def test_a_changed_hash_a_hash_more_or_less_proves_nothing(size: int, data: st.DataObject) -> None:
    tree = leaves(size)
    index = data.draw(st.integers(0, size - 1))
    inclusion, consistency = inclusion_proof(tree, index), consistency_proof(tree, index + 1)
    for proof, holds in (
        (inclusion, lambda found: is_included(tree[index], index, size, found, root(tree))),
        (consistency, lambda found: is_consistent(index + 1, root(tree[: index + 1]), size, root(tree), found)),
    ):
        assert holds(proof)
        assert not holds([*proof, EMPTY])
        if proof:
            place = data.draw(st.integers(0, len(proof) - 1))
            assert not holds([*proof[:place], EMPTY, *proof[place + 1 :]])
            assert not holds(proof[:place] + proof[place + 1 :])


def test_a_node_is_no_leaf() -> None:
    """Otherwise a tree of two leaves could be passed off as one of one leaf, whose entry is the two hashes."""
    pair = leaves(2)
    assert leaf_hash(pair[0] + pair[1]) != root(pair)
