"""Prints the p values that measure/records/src/stats/mann_whitney.rs is tested against, beside those of R.

python3 -m venv venv && venv/bin/pip install scipy==1.17.1
venv/bin/python tests/golden/mann_whitney.py
"""

import math

from scipy.stats import mannwhitneyu, permutation_test

SIDES = ("two-sided", "less", "greater")
TIED = [1.0, 2.0, 2.0, 3.0, 5.0], [2.0, 3.0, 3.0, 8.0, 9.0, 9.0]


def u(x, y):
    return mannwhitneyu(x, y, method="asymptotic").statistic


for x, y, methods in (
    ([1.25, 7.5, 3.0, 12.0], [2.5, 9.0, 10.0, 15.5, 20.0, 3.75], ("exact", "asymptotic")),
    ([float(i * 37 % 101) for i in range(1, 41)], [float(i * 37 % 101) + 12.5 for i in range(1, 46)],
     ("exact", "asymptotic")),
    (*TIED, ("asymptotic",)),
):
    for method in methods:
        print(x, y, method, [float(mannwhitneyu(x, y, alternative=side, method=method).pvalue) for side in SIDES])
# SciPy's exact method ignores ties; all divisions of the values do not.
print(*TIED, "exact", [
    float(permutation_test(TIED, u, permutation_type="independent", n_resamples=math.inf, alternative=side).pvalue)
    for side in SIDES
])
