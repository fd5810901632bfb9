#' samovar: measure TCP experiments on real testbeds
#'
#' Three steps, found by the first word of a name: `read_*` turns a file into a
#' data.table, `measure` functions turn tables into numbers with units, `plot_*`
#' turns tables into figures.
#'
#' Times are double nanoseconds since `attr(x, "epoch_s")`, a whole second of the
#' Unix epoch: a double holds them exactly for 104 days, while epoch seconds in a
#' double are only good to 0.24 microseconds.
#'
#' @keywords internal
#' @useDynLib samovar, .registration = TRUE
#' @import data.table
#' @importFrom Rcpp evalCpp
#' @importFrom stats median
"_PACKAGE"

.datatable.aware <- TRUE
