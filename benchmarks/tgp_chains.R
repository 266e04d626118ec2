# Rscript tgp_chains.R DIRECTORY CORRELATION SCALED SEED BURN TOTAL THIN: the states of one long chain of tgp's bgp.
# Reads x.csv, y.csv and xx.csv there, without headers. Writes chain.csv: range, nugget, variance, a0 and g0.
arguments <- commandArgs(trailingOnly = TRUE)
suppressPackageStartupMessages(library(tgp))
read <- function(name) as.matrix(read.csv(file.path(arguments[1], name), header = FALSE))
set.seed(as.integer(arguments[4]))
fitted <- bgp(
  X = read("x.csv"), Z = read("y.csv")[, 1], XX = read("xx.csv"), corr = arguments[2],
  m0r1 = as.logical(arguments[3]), BTE = as.integer(arguments[5:7]), pred.n = FALSE, trace = TRUE, verb = 0
)
states <- cbind(fitted$trace$XX[[1]][, c("d", "nug", "s2")], fitted$trace$hier[, c("s2.a0", "s2.g0")])
names(states) <- c("d", "nug", "s2", "a0", "g0")
write.csv(states, file.path(arguments[1], "chain.csv"), row.names = FALSE)
