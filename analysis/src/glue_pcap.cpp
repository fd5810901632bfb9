#include <Rcpp.h>

// Placeholder for the reader; keeps the shared library loadable.
// [[Rcpp::export]]
int core_version() { return 1; }
