# Rscript treed_gp.R DIRECTORY SEED BURN TOTAL THIN: a Bayesian treed Gaussian process (tgp::btgp).
# Reads x.csv, y.csv and xx.csv there, without headers; writes draws.csv: a row a draw of the predictive law at xx.
arguments <- commandArgs(trailingOnly = TRUE)
suppressPackageStartupMessages(library(tgp))
read <- function(name) as.matrix(read.csv(file.path(arguments[1], name), header = FALSE))
set.seed(as.integer(arguments[2]))
fitted <- btgp(
  X = read("x.csv"), Z = read("y.csv")[, 1], XX = read("xx.csv"), BTE = as.integer(arguments[3:5]),
  pred.n = FALSE, trace = TRUE, verb = 0
)
# The trace is in the units of a response of mean zero and range one.
draws <- mean(fitted$Z) + diff(range(fitted$Z)) * as.matrix(fitted$trace$preds$ZZ)
stopifnot(max(abs(colMeans(draws) - fitted$ZZ.mean)) < 1e-3 * diff(range(fitted$Z)))
write.table(draws, file.path(arguments[1], "draws.csv"), sep = ",", row.names = FALSE, col.names = FALSE)
