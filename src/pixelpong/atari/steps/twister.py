"""C++'s ``mt19937``, a generator of 32-bit numbers. Parts of kernels.

ale-py draws its random numbers with it, so an environment that gives the same bytes needs it too.
A number can be looked at before it is used, because a game may end before a frame that the number
is for. Therefore more words are kept than the recurrence needs.

Source: Matsumoto and Nishimura, "Mersenne Twister" (1998). It equals `numpy.random.MT19937`, by
tests.
"""

from __future__ import annotations

import numpy as np

from pixelpong.atari.steps.compiling import kernel_part
from pixelpong.atari.steps.records import WORDS

_SIZE, _LAST = 624, WORDS - 1  # words in the recurrence; the mask of an index
_MOST = 2**32
_MOST_REJECTED = 100  # two in succession are rejected with a probability of 1e-14 or less


@kernel_part
def seed_twister(twister, seed):  # type: ignore[no-untyped-def]
    """Seed a generator with the lowest 32 bits of a number."""
    word = seed & (_MOST - 1)
    twister.words[0] = word
    for k in range(1, _SIZE):
        word = (1_812_433_253 * (word ^ word >> 30) + k) & (_MOST - 1)
        twister.words[k] = word
    twister.made = twister.used = _SIZE


@kernel_part
def peek(twister, ahead):  # type: ignore[no-untyped-def]
    """Return the number after `ahead` others, below WORDS − 624, without consuming any."""
    wanted, words = twister.used + ahead, twister.words
    while twister.made <= wanted:
        n = twister.made
        high, low = words[(n - 624) & _LAST], words[(n - 623) & _LAST]
        word = np.int64(high) & 0x8000_0000 | np.int64(low) & 0x7FFF_FFFF
        turned = word >> 1 ^ (word & 1) * 0x9908_B0DF
        words[n & _LAST] = np.int64(words[(n - 227) & _LAST]) ^ turned
        twister.made += 1
    number = np.int64(words[wanted & _LAST])
    number ^= number >> 11
    number ^= number << 7 & 0x9D2C_5680
    number ^= number << 15 & 0xEFC6_0000
    return number ^ number >> 18


@kernel_part
def use(twister):  # type: ignore[no-untyped-def]
    """Consume the next number and return it."""
    number = peek(twister, 0)
    twister.used += 1
    return number


@kernel_part
def use_below(twister, n):  # type: ignore[no-untyped-def]
    """Draw a number from 0 to n − 1 as GNU's C++ ``uniform_int_distribution`` does.

    The method is Lemire's; very few numbers are rejected. A generator of zeros, which no seed
    gives, would reject all of its numbers, so there is a limit.
    """
    product = use(twister) * n
    for _ in range(_MOST_REJECTED):
        if product % _MOST >= (_MOST - n) % n:
            break
        product = use(twister) * n
    return product >> 32


@kernel_part
def use_below_as_apple(twister, n):  # type: ignore[no-untyped-def]
    """Draw a number from 0 to n − 1 as LLVM's C++ library does, which Apple ships.

    It takes as many low bits as n − 1 has, again until they are below n. There is a limit as above;
    it is reached with a probability of 1e-30 or less. For n = 1 it draws nothing.
    """
    mask, number = np.int64(0), np.int64(0)
    while mask < n - 1:
        mask = 2 * mask + 1
    if mask:
        number = use(twister) & mask
        for _ in range(_MOST_REJECTED):
            if number < n:
                break
            number = use(twister) & mask
    return number % n
