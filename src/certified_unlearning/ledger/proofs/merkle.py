"""Merkle trees as in RFC 6962, Section 2.1: one hash for a list that only grows, and short proofs about the list.

A leaf is hashed after a byte 0 and a node after a byte 1, so neither can be taken for the other. Proofs are checked by
the algorithms of RFC 9162, Sections 2.1.3.2 and 2.1.4.2.
"""

import hashlib
from collections.abc import Sequence

EMPTY = hashlib.sha256(b"").digest()
"""The root of a tree without leaves."""


def leaf_hash(entry: bytes) -> bytes:
    """Return the hash of a leaf."""
    return hashlib.sha256(b"\x00" + entry).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """Return the root of a tree, 32 bytes.

    Args:
        leaves: The hashes of the tree's leaves, 32 bytes each.
    """
    if not leaves:
        return EMPTY
    level = list(leaves)
    while len(level) > 1:
        level = _level_above(level)
    return level[0]


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the hashes that lead from one leaf to the root. Their number is at most ``log2(size)``, rounded up.

    Args:
        leaves: The hashes of all leaves.
        index: The number of the leaf, from 0.
    """
    proof, level = [], list(leaves)
    while len(level) > 1:
        sibling = index ^ 1
        # The last node of a level with an odd number of nodes has no sibling and moves up as it is.
        if sibling < len(level):
            proof.append(level[sibling])
        level, index = _level_above(level), index >> 1
    return proof


def is_included(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root_hash: bytes) -> bool:
    """Return whether a proof shows that a leaf is at a certain place of the tree with this root.

    Args:
        leaf: The hash of the leaf.
        index: The leaf's place in the tree, from 0.
        size: The number of leaves of the tree.
        proof: The result of `inclusion_proof`.
        root_hash: The root.
    """
    if not 0 <= index < size:
        return False
    node, last, found = index, size - 1, leaf
    for each in proof:
        if last == 0:
            return False
        if node & 1 or node == last:
            found = _node(each, found)
            while node and not node & 1:
                node, last = node >> 1, last >> 1
        else:
            found = _node(found, each)
        node, last = node >> 1, last >> 1
    return last == 0 and found == root_hash


def consistency_proof(leaves: Sequence[bytes], earlier: int) -> list[bytes]:
    """Return the hashes that prove that a tree begins with an earlier tree, unchanged.

    Args:
        leaves: The hashes of all leaves.
        earlier: The number of leaves of the earlier tree, from 1 to the number of all leaves.
    """
    return _subproof(list(leaves), earlier, is_whole=True)


def is_consistent(earlier: int, earlier_root: bytes, size: int, root_hash: bytes, proof: Sequence[bytes]) -> bool:
    """Return whether a proof shows that a later tree begins with an earlier one, unchanged.

    Args:
        earlier: The number of leaves of the earlier tree.
        earlier_root: The root of the earlier tree.
        size: The number of leaves of the later tree.
        root_hash: The root of the later tree.
        proof: The result of `consistency_proof`.
    """
    if not 0 < earlier <= size:
        return False
    if earlier == size:
        return not proof and earlier_root == root_hash
    # If the number of earlier leaves is a power of two, their root is a node of the later tree. The proof omits it.
    path = [earlier_root, *proof] if earlier & (earlier - 1) == 0 else list(proof)
    if not path:
        return False
    node, last = earlier - 1, size - 1
    while node & 1:
        node, last = node >> 1, last >> 1
    first = second = path[0]
    for each in path[1:]:
        if last == 0:
            return False
        if node & 1 or node == last:
            first, second = _node(each, first), _node(each, second)
            while node and not node & 1:
                node, last = node >> 1, last >> 1
        else:
            second = _node(second, each)
        node, last = node >> 1, last >> 1
    return last == 0 and first == earlier_root and second == root_hash


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def _level_above(level: list[bytes]) -> list[bytes]:
    """Return the parents of the nodes of a level."""
    parents = [_node(left, right) for left, right in zip(level[::2], level[1::2], strict=False)]
    return [*parents, level[-1]] if len(level) % 2 else parents


def _subproof(leaves: list[bytes], earlier: int, *, is_whole: bool) -> list[bytes]:
    """Return SUBPROOF as defined in RFC 6962, Section 2.1.2.

    Args:
        leaves: The leaves of a subtree.
        earlier: The number of these leaves that the earlier tree had.
        is_whole: Whether the earlier leaves of this subtree are the whole earlier tree, whose root is then known.
    """
    if earlier == len(leaves):
        return [] if is_whole else [root(leaves)]
    split = 1 << (len(leaves) - 1).bit_length() - 1
    if earlier <= split:
        return [*_subproof(leaves[:split], earlier, is_whole=is_whole), root(leaves[split:])]
    return [*_subproof(leaves[split:], earlier - split, is_whole=False), root(leaves[:split])]
