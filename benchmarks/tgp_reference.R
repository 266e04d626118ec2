# Rscript tgp_reference.R DIRECTORY CORRELATION SCALED REPEATS BURN TOTAL THIN: tgp's Bayesian Gaussian process (bgp).
# Reads x.csv, y.csv and xx.csv there, without headers. Writes runs.csv: for each repeat (its seed) and row of xx mean,
# 5 %, 50 % and 95 % quantiles of the draws of new observations; and states.csv: for a few states of a short chain
# its unknowns, lambda and log|K|, and the kriging mean and variance at each row of xx given that state.
arguments <- commandArgs(trailingOnly = TRUE)
suppressPackageStartupMessages(library(tgp))
read <- function(name) as.matrix(read.csv(file.path(arguments[1], name), header = FALSE))
scaled <- as.logical(arguments[3])
fit <- function(seed, rounds, trace) {
  set.seed(seed)
  bgp(
    X = read("x.csv"), Z = read("y.csv")[, 1], XX = read("xx.csv"), corr = arguments[2], m0r1 = scaled,
    BTE = as.integer(rounds), pred.n = FALSE, trace = trace, verb = 0
  )
}
run <- function(seed) {
  fitted <- fit(seed, arguments[5:7], FALSE)
  data.frame(
    seed = seed, row = seq_along(fitted$ZZ.mean) - 1, mean = fitted$ZZ.mean,
    q05 = fitted$ZZ.q1, q50 = fitted$ZZ.med, q95 = fitted$ZZ.q2
  )
}
write <- function(table, name) write.csv(table, file.path(arguments[1], name), row.names = FALSE)
write(do.call(rbind, lapply(seq_len(as.integer(arguments[4])), run)), "runs.csv")

traced <- fit(1, c(300, 420, 20), TRUE)
unknowns <- traced$trace$XX[[1]]
kept <- grepl("^(lambda|s2|nug|d[0-9]*|ldetK)$", names(unknowns))
write(cbind(unknowns[, kept], mean = traced$trace$preds$ZZ.km, variance = traced$trace$preds$ZZ.ks2), "states.csv")
