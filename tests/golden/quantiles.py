"""Prints the quantiles that measure/src/stats/quantile.rs is tested against."""

from statistics import quantiles

for data in (
    [3.0, 1.0, 2.0, 5.0],
    [10.5, -2.0, 7.25, 7.25, 0.0, 100.0],
    [2.0 ** i for i in range(1, 10)],
):
    print(data, quantiles(data, n=8, method="inclusive"))
