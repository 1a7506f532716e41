"""Writes clock-core/src/fit_laws/golden.rs: what statsmodels finds on a few data sets, to check `fit.rs` against.

    python3 -m venv venv && venv/bin/pip install statsmodels==0.15.0
    venv/bin/python tests/golden/least_squares.py | rustfmt --edition 2024 --config-path . \
        > clock-core/src/fit_laws/golden.rs

The values for Norris are not computed here: NIST certifies them (https://www.itl.nist.gov/div898/strd/lls/lls.shtml).
"""

import random
import sys

import numpy
import scipy
import statsmodels
import statsmodels.api as sm

NORRIS_Y = [
    0.1, 338.8, 118.1, 888.0, 9.2, 228.1, 668.5, 998.5, 449.1, 778.9, 559.2, 0.3, 0.1, 778.1, 668.8, 339.3, 448.9, 10.8,
    557.7, 228.3, 998.0, 888.8, 119.6, 0.3, 0.6, 557.6, 339.3, 888.0, 998.5, 778.9, 10.2, 117.6, 228.9, 668.4, 449.2, 0.2,
]
NORRIS_X = [
    0.2, 337.4, 118.2, 884.6, 10.1, 226.5, 666.3, 996.3, 448.6, 777.0, 558.2, 0.4, 0.6, 775.5, 666.9, 338.0, 447.5, 11.6,
    556.0, 228.1, 995.8, 887.6, 120.2, 0.3, 0.3, 556.8, 339.1, 887.2, 999.0, 779.0, 11.1, 118.3, 229.2, 669.1, 448.9, 0.5,
]

ANSCOMBE_X = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0]
ANSCOMBE_X4 = [8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 19.0, 8.0, 8.0, 8.0]
ANSCOMBE = [
    (ANSCOMBE_X, [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68]),
    (ANSCOMBE_X, [9.14, 8.14, 8.74, 8.77, 9.26, 8.10, 6.13, 3.10, 9.13, 7.26, 4.74]),
    (ANSCOMBE_X, [7.46, 6.77, 12.74, 7.11, 7.81, 8.84, 6.08, 5.39, 8.15, 6.42, 5.73]),
    (ANSCOMBE_X4, [6.58, 5.76, 7.71, 8.84, 8.47, 7.04, 5.25, 12.50, 5.56, 7.91, 6.89]),
]


def clock():
    """Offsets of a clock that drifts by 17 ppm, 20 in a second, measured to some 30 ns."""
    source = random.Random(2)
    x = [50_000_000 * i + source.randrange(2_000_000) for i in range(20)]
    return [float(v) for v in x], [float(round(-4_321 + 17e-6 * v + source.gauss(0, 30))) for v in x]


def fitted(name, x, y, new):
    # Centred for the condition of the matrix; slope and errors at a point do not depend on it.
    middle = float(numpy.mean(x))
    model = sm.OLS(numpy.array(y), sm.add_constant(numpy.array(x) - middle)).fit()
    # At x = 0 and at `new`.
    frame = model.get_prediction(numpy.array([[1.0, -middle], [1.0, new - middle]])).summary_frame()
    line_error = frame["mean_se"]
    # statsmodels has the standard error of a prediction only as a variance.
    prediction_error = numpy.sqrt(line_error**2 + model.mse_resid)
    return (name, x, y, model.params[1], frame["mean"][0], model.rsquared, numpy.sqrt(model.mse_resid), model.bse[1],
            line_error[0], new, frame["mean"][1], line_error[1], prediction_error[1])


FIELDS = ["name", "x", "y", "slope", "intercept", "r_squared", "deviation", "slope_error", "intercept_error", "new",
          "value", "value_error", "prediction_error"]


def rust(value):
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return "&[" + ", ".join(map(rust, value)) + "]"
    return repr(float(value))


sets = [fitted(f"Anscombe {i}", x, y, 20.0) for i, (x, y) in enumerate(ANSCOMBE, 1)]
sets.append(fitted("clock", *clock(), 10e9))

versions = f"Python {sys.version.split()[0]}, statsmodels {statsmodels.__version__}, numpy {numpy.__version__}, " \
           f"scipy {scipy.__version__}"
print(f"//! Made by tests/golden/least_squares.py with {versions}.\n")
print("/// A data set and what is known about it; `value` and its errors are those at x = `new`.")
print("pub(super) struct Golden {")
for field in FIELDS:
    kind = {"name": "&'static str", "x": "&'static [f64]", "y": "&'static [f64]"}.get(field, "f64")
    print(f"    pub(super) {field}: {kind},")
print("}\n")
print(f"pub(super) const NORRIS_X: &[f64] = {rust(NORRIS_X)};\n")
print(f"pub(super) const NORRIS_Y: &[f64] = {rust(NORRIS_Y)};\n")
print("pub(super) const SETS: &[Golden] = &[")
for values in sets:
    print("Golden {" + ", ".join(f"{f}: {rust(v)}" for f, v in zip(FIELDS, values)) + "},")
print("];")
