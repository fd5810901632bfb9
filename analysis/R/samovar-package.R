# Documentation and imports of the package.

#' samovar: measure TCP experiments on real testbeds
#'
#' An analysis has three steps: functions `read_*` read a file into a data.table, measure functions compute numbers with units from such tables, and
#' functions `plot_*` draw figures of them. `vignette("captures", package = "samovar")` leads through the steps.
#'
#' Times are nanoseconds (double) since `attr(x, "epoch_s")`, a whole second of the
#' Unix epoch: a double holds them exactly for 104 days, while seconds since 1970
#' in a double are exact to 0.24 microseconds only.
#'
#' @keywords internal
#' @useDynLib samovar, .registration = TRUE
#' @import data.table
#' @importFrom Rcpp evalCpp
#' @importFrom stats median
"_PACKAGE"

.datatable.aware <- TRUE
