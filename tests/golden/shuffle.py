"""Prints the orders that measure/src/shuffle.rs is tested against."""

MASK = (1 << 64) - 1


def split_mix(state):
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def order(count, seed):
    things, numbers = list(range(count)), split_mix(seed)
    for last in range(count - 1, 0, -1):
        end = last + 1
        # Fair: the lower half of the product is not among the first 2^64 mod end.
        product = next(p for p in (end * n for n in numbers) if p & MASK >= (1 << 64) % end)
        drawn = product >> 64
        things[last], things[drawn] = things[drawn], things[last]
    return things


for seed in (1, 2, MASK):
    print(seed, order(12, seed))
