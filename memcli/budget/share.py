"""How the tokens that are there for blocks are divided among them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

from memcli.record import record

Content = TypeVar("Content")

Sized: TypeAlias = tuple[Content, int]
"""A content and what it costs."""

Shrink: TypeAlias = Callable[[int, int], tuple[Content, int] | None]
"""Given a block's number and the tokens it may cost: what it makes of its content, or None to be left out."""


@record
class Wish(Generic[Content]):
    """What a block would put into the prompt, what that costs, and its weight, which is above zero."""

    content: Content
    tokens: int
    weight: float


def divide(capacity: int, wants: Sequence[int], weights: Sequence[float]) -> list[int]:
    """Return what each may have: its share by weight, and of what others leave over the same again.

    Nobody is given more than it wants, and all is given away while somebody wants more. What does not divide evenly
    goes one by one to those whose share was cut off the most.
    """
    from fractions import Fraction  # only blocks are divided among, and it takes decimal with it

    granted = [0] * len(wants)
    rest = max(0, capacity)
    exact = [Fraction(weight) for weight in weights]
    hungry = [at for at in range(len(wants)) if wants[at] > 0]
    while hungry:
        total = sum(exact[at] for at in hungry)
        sated = [at for at in hungry if wants[at] * total <= rest * exact[at]]
        if not sated:
            break
        for at in sated:
            granted[at] = wants[at]
        rest -= sum(wants[at] for at in sated)
        hungry = [at for at in hungry if at not in sated]
    if hungry:
        total = sum(exact[at] for at in hungry)
        shares = {at: rest * exact[at] / total for at in hungry}
        for at, share in shares.items():
            granted[at] = int(share)
        over = rest - sum(granted[at] for at in hungry)
        for at in sorted(hungry, key=lambda at: granted[at] - shares[at])[:over]:
            granted[at] += 1
    return granted


def fit(
    capacity: int, wishes: Sequence[Wish[Content]], shrink: Shrink[Content]
) -> tuple[Mapping[int, Sized[Content]], Mapping[int, int]]:
    """Return what each block puts into the prompt, and for those left out the tokens they could have had.

    A block that cannot be made smaller may take more than its share, so that it is not left out for a few tokens:
    up to half of what the others were given. If that is not enough, the one of the lowest weight is left out, of
    equals the last, and the rest is divided anew. What shrinking saved beyond need goes to the others in order.
    """
    fixed: dict[int, Sized[Content]] = {}
    out: dict[int, int] = {}
    while True:
        hungry = [at for at in range(len(wishes)) if at not in fixed and at not in out]
        rest = capacity - sum(tokens for _, tokens in fixed.values())
        rooms = dict(
            zip(
                hungry,
                divide(rest, [wishes[at].tokens for at in hungry], [wishes[at].weight for at in hungry]),
                strict=True,
            )
        )
        made = {at: _made(wishes[at], at, room, shrink) for at, room in rooms.items()}
        kept = {at: sized for at, sized in made.items() if sized is not None}
        declined = sorted([at for at in hungry if at not in kept], key=lambda at: -wishes[at].weight)
        if not declined:
            return _topped(capacity, wishes, fixed | kept, shrink), out
        given = sum(rooms.values())
        lucky = [at for at in declined if 2 * (wishes[at].tokens - rooms[at]) <= given - rooms[at]]
        if lucky:
            fixed[lucky[0]] = (wishes[lucky[0]].content, wishes[lucky[0]].tokens)
        else:
            out[declined[-1]] = rooms[declined[-1]]


def _made(wish: Wish[Content], at: int, room: int, shrink: Shrink[Content]) -> "Sized[Content] | None":
    return (wish.content, wish.tokens) if wish.tokens <= room else shrink(at, room)


def _topped(
    capacity: int, wishes: Sequence[Wish[Content]], kept: dict[int, Sized[Content]], shrink: Shrink[Content]
) -> Mapping[int, Sized[Content]]:
    """Return the contents with what is left over given to those that shrank, in order."""
    over = capacity - sum(tokens for _, tokens in kept.values())
    for at, (_, tokens) in sorted(kept.items()):
        if over > 0 and tokens < wishes[at].tokens:
            more = _made(wishes[at], at, tokens + over, shrink)
            if more is not None and more[1] > tokens:
                over -= more[1] - tokens
                kept[at] = more
    return kept
