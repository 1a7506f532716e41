# Writes measure/src/stats/golden.rs: what R finds in a few pairs of samples, to check the statistics against.
#
#     Rscript tests/golden/statistics.R | rustfmt --edition 2024 --config-path . > measure/src/stats/golden.rs
#
# R needs no package beside its own `stats`.

# The shortest digits that are read back as the same number.
number <- function(x) {
  if (is.infinite(x)) return(if (x > 0) "f64::INFINITY" else "f64::NEG_INFINITY")
  for (digits in 1:17) {
    text <- formatC(x, digits = digits, format = "g")
    if (as.numeric(text) == x) break
  }
  text <- sub("e([+-])0*", "e\\1", trimws(text))
  text <- sub("e+", "e", text, fixed = TRUE)
  if (grepl("[.e]", text)) text else paste0(text, ".0")
}
join <- function(x) paste(vapply(x, number, ""), collapse = ", ")
slice <- function(x) paste0("&[", join(x), "]")
array <- function(x) paste0("[", join(x), "]")
pair <- function(x) paste0("(", join(x), ")")
maybe <- function(x) if (is.null(x)) "None" else paste0("Some(", x, ")")
quiet <- function(expr) suppressWarnings(expr)

ALTERNATIVES <- c("two.sided", "less", "greater")

set.seed(20160101)
times <- function(n, shift = 0, digits = 3) round(400 + shift + 2 * rnorm(n) + rexp(n, 1 / 3), digits)

pairs <- list(
  list("one and one", 1.5, 2.5),
  list("one and one, the same", 7, 7),
  list("one and five", 3.25, c(1, 2, 3, 4, 5)),
  list("two and three", c(10.5, 11.25), c(1, 2, 10.75)),
  list("two inside two", c(1, 4), c(2, 3)),
  list("the same three", c(1, 2, 3), c(1, 2, 3)),
  list("five and four, apart", c(1, 2, 3, 4, 5.5), c(11, 12.5, 13, 14)),
  list("ten and twelve", times(10), times(12, 1)),
  list("thirty and thirty", times(30), times(30, 2)),
  list("49 and 7", times(49, 1), times(7)),
  list("49 and 49, apart", times(49), times(49, 100)),
  list("49 and 50", times(49), times(50, 0.5)),
  list("60 and 60, far apart", times(60, 500), times(60)),
  list("60 and 3", times(60), times(3, 1)),
  list("ten and twelve with ties", times(10, digits = 0), times(12, 1, digits = 0)),
  list("thirty and thirty with ties", times(30, digits = 0), times(30, 2, digits = 0)),
  list("60 and 45 with ties", times(60, 1, digits = 0), times(45, digits = 0)),
  list("nearly all the same", c(rep(5, 20), 6), c(rep(5, 18), 4, 4)),
  list("equal and equal, apart", rep(1, 5), rep(2, 4)),
  list("far from zero", 1e9 + times(12), 1e9 + times(11, 3))
)

cat("//! Made by tests/golden/statistics.R with ", R.version.string, ".\n\n", sep = "")
cat("/// Two samples and what R knows about them.
pub(super) struct Pair {
    pub(super) name: &'static str,
    pub(super) x: &'static [f64],
    pub(super) y: &'static [f64],
    /// W, whether p is exact, and p by alternative: two-sided, less, greater.
    pub(super) wilcoxon: (f64, bool, [f64; 3]),
    /// p by the normal approximation, with the continuity correction.
    pub(super) approximate: [f64; 3],
    /// The median of all differences, and R's own estimate; they differ where R looks for a root numerically.
    pub(super) shifts: [f64; 2],
    /// The intervals of the shift with 90, 95 and 99 %.
    pub(super) intervals: [(f64, f64); 3],
    /// t, the degrees of freedom, and p by alternative.
    pub(super) welch: Option<(f64, f64, [f64; 3])>,
    /// Of x: standard deviation, and the intervals of the mean with 95 and 99 %.
    pub(super) spread: Option<(f64, [(f64, f64); 2])>,
    /// Of x: W of Shapiro and Wilk, and its p.
    pub(super) shapiro: Option<(f64, f64)>,
}\n\n")
cat("pub(super) const PAIRS: &[Pair] = &[\n")
for (case in pairs) {
  x <- case[[2]]
  y <- case[[3]]
  p <- function(...) vapply(ALTERNATIVES, function(side) quiet(wilcox.test(x, y, side, ...))$p.value, 0)
  # Where all values are the same R has no p (0 / 0); the crate says 1, and it is tested elsewhere.
  finite <- function(p) ifelse(is.nan(p), 1, p)
  all <- c(x, y)
  exact <- length(x) < 50 && length(y) < 50 && !anyDuplicated(all)
  test <- quiet(wilcox.test(x, y))
  stopifnot(exact == grepl("exact", test$method))
  # R finds no interval where all differences are the same (0 / 0 again): that difference is then all there can be.
  same <- length(unique(x)) == 1 && length(unique(y)) == 1 && !exact
  level <- function(level) {
    if (same) return(c(x[1] - y[1], x[1] - y[1]))
    quiet(wilcox.test(x, y, conf.int = TRUE, conf.level = level, tol.root = 1e-12))$conf.int
  }
  estimate <- if (same) x[1] - y[1] else
    quiet(wilcox.test(x, y, conf.int = TRUE, tol.root = 1e-12))$estimate
  welch <- if (length(x) > 1 && length(y) > 1 && (sd(x) > 0 || sd(y) > 0)) {
    test_t <- lapply(ALTERNATIVES, function(side) t.test(x, y, side))
    sprintf("(%s, %s, %s)", number(test_t[[1]]$statistic), number(test_t[[1]]$parameter),
            array(vapply(test_t, function(test) test$p.value, 0)))
  }
  spread <- if (length(x) > 1 && sd(x) > 0)
    sprintf("(%s, [%s, %s])", number(sd(x)), pair(t.test(x)$conf.int), pair(t.test(x, conf.level = 0.99)$conf.int))
  # Around zero, as R loses digits of values far from it.
  shapiro <- if (length(x) > 2 && sd(x) > 0) pair(unlist(shapiro.test(x - median(x))[c("statistic", "p.value")]))
  cat(sprintf('Pair { name: "%s", x: %s, y: %s,\n', case[[1]], slice(x), slice(y)))
  cat(sprintf("wilcoxon: (%s, %s, %s), approximate: %s,\n", number(test$statistic), tolower(exact),
              array(finite(p())), array(finite(p(exact = FALSE)))))
  cat(sprintf("shifts: %s, intervals: [%s, %s, %s],\n", array(c(median(outer(x, y, "-")), estimate)),
              pair(level(0.9)), pair(level(0.95)), pair(level(0.99))))
  cat(sprintf("welch: %s, spread: %s, shapiro: %s },\n", maybe(welch), maybe(spread), maybe(shapiro)))
}
cat("];\n\n")

cat("/// Degrees of freedom, t, and the share of Student's distribution beyond t.\n")
cat("pub(super) const STUDENT_TAILS: &[[f64; 3]] = &[\n")
for (df in c(1, 1.5, 2, 3.7, 10, 29, 100.5, 1e4, 1e6)) for (t in c(0, 1e-3, 0.1, 1, 2.5, 8, 40, 1e3)) {
  tail <- pt(t, df, lower.tail = FALSE)
  if (tail > 1e-290) cat(array(c(df, t, tail)), ",\n")
}
cat("];\n\n")

cat("/// Degrees of freedom, a share, and the t beyond which this share of Student's distribution is.\n")
cat("pub(super) const STUDENT_QUANTILES: &[[f64; 3]] = &[\n")
for (df in c(1, 1.5, 2, 3.7, 10, 29, 100.5, 1e4, 1e6)) for (p in c(0.45, 0.1, 0.025, 0.005, 1e-6, 1e-12))
  cat(array(c(df, p, qt(p, df, lower.tail = FALSE))), ",\n")
cat("];\n\n")

cat("/// z, and the share of the normal distribution beyond z.\n")
cat("pub(super) const NORMAL_TAILS: &[[f64; 2]] = &[\n")
for (z in c(-9, -3, -1, -0.1, 0, 1e-4, 0.5, 1, 1.96, 3, 5, 8, 20, 37))
  cat(array(c(z, pnorm(z, lower.tail = FALSE))), ",\n")
cat("];\n\n")

cat("/// A share, and the z below which this share of the normal distribution is.\n")
cat("pub(super) const NORMAL_QUANTILES: &[[f64; 2]] = &[\n")
for (p in c(1e-300, 1e-20, 1e-17, 1e-9, 1e-4, 0.025, 0.07, 0.08, 0.3, 0.5, 0.6, 0.92, 0.93, 0.975, 0.9999, 1 - 1e-12))
  cat(array(c(p, qnorm(p))), ",\n")
cat("];\n\n")

cat("/// p values, and what they are after Holm's adjustment.\n")
cat("pub(super) const HOLM: &[[&[f64]; 2]] = &[\n")
for (p in list(0.03, c(0.01, 0.04, 0.03, 0.005), c(0.2, 0.2, 0.01, 0.01, 0.9, 1, 0), round(runif(40)^4, 6)))
  cat("[", slice(p), ",", slice(p.adjust(p, "holm")), "],\n")
cat("];\n\n")

cat("/// A count, and W of Shapiro and Wilk with its p, of the numbers `(7919 i mod 5003)^2`, i = 1, 2, ... so many.\n")
cat("pub(super) const SHAPIRO_OF_SQUARES: &[(u64, f64, f64)] = &[\n")
for (n in c(3, 4, 5, 6, 7, 11, 12, 50, 499, 5000)) {
  test <- shapiro.test(((7919 * 1:n) %% 5003)^2)
  cat(sprintf("(%d, %s, %s),\n", n, number(test$statistic), number(test$p.value)))
}
cat("];\n\n")

cat("/// The same of the whole numbers nearest to a thousand normal quantiles, which look normal.\n")
cat("pub(super) const SHAPIRO_OF_NORMAL: &[(u64, f64, f64)] = &[\n")
for (n in c(3, 5, 9, 11, 12, 100, 2000)) {
  test <- shapiro.test(round(1000 * qnorm(ppoints(n))))
  cat(sprintf("(%d, %s, %s),\n", n, number(test$statistic), number(test$p.value)))
}
cat("];\n\n")

cat("/// The theoretical quantiles of the normal Q-Q plot of so many values as there are here.\n")
cat("pub(super) const QQ: &[&[f64]] = &[\n")
for (n in c(1, 4, 10, 11)) cat(slice(qqnorm(1:n, plot.it = FALSE)$x), ",\n")
cat("];\n\n")

cat("/// Groups: mean squares between and within, and the launches that a mean needs to be known to 1 % with 95 %.
pub(super) struct Launches {
    pub(super) groups: &'static [&'static [f64]],
    pub(super) mean_squares: (f64, f64),
    pub(super) needed: u64,
}\n\n")
cat("pub(super) const LAUNCHES: &[Launches] = &[\n")
launches <- function(sizes, spread) lapply(sizes, function(n) times(n, rnorm(1, 0, spread), 2))
for (groups in list(launches(rep(8, 6), 5), launches(rep(5, 4), 60), launches(c(3, 7, 5, 12), 10), launches(rep(9, 5), 0))) {
  frame <- data.frame(value = unlist(groups), launch = factor(rep(seq_along(groups), lengths(groups))))
  squares <- anova(lm(value ~ launch, frame))[["Mean Sq"]]
  sizes <- lengths(groups)
  typical <- (sum(sizes) - sum(sizes^2) / sum(sizes)) / (length(sizes) - 1)
  between <- max(0, (squares[1] - squares[2]) / typical)
  # Launches of ten observations each.
  variance <- between + squares[2] / 10
  middle <- mean(vapply(groups, mean, 0))
  k <- 2
  while (qt(0.975, k - 1) * sqrt(variance / k) > 0.01 * middle) k <- k + 1
  cat(sprintf("Launches { groups: &[%s], mean_squares: %s, needed: %d },\n",
              paste(vapply(groups, slice, ""), collapse = ", "), pair(squares), k))
}
cat("];\n")

cat("/// Values, the bandwidth of their density, the density at a few places, and how many bins a histogram is to have.
pub(super) struct Shape {
    pub(super) values: &'static [f64],
    pub(super) bandwidth: f64,
    pub(super) density: &'static [(f64, f64)],
    pub(super) bins: usize,
}\n\n")
cat("pub(super) const SHAPES: &[Shape] = &[\n")
for (x in list(c(1, 2, 4), times(30), c(times(20), times(15, 60)), times(50, digits = 0), rep(c(5, 6, 9), c(40, 1, 1)))) {
  bandwidth <- bw.nrd0(x)
  places <- seq(min(x) - 2 * bandwidth, max(x) + 2 * bandwidth, length.out = 7)
  # The exact sum; R's own `density` bins its values, as ours does.
  heights <- vapply(places, function(place) mean(dnorm(place, x, bandwidth)), 0)
  cat(sprintf("Shape { values: %s, bandwidth: %s, density: &[%s], bins: %d },\n", slice(x), number(bandwidth),
              paste(mapply(function(place, height) pair(c(place, height)), places, heights), collapse = ", "),
              as.integer(nclass.FD(x))))
}
cat("];\n")
