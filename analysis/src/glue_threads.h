// The number of threads that the R user has set.
#pragma once

#include <Rcpp.h>

#include "core_threads.h"

// Option `samovar.threads`, or one for each processor that R may run on.
inline size_t threads_wanted() {
  SEXP option = Rf_GetOption1(Rf_install("samovar.threads"));
  if (Rf_isNull(option)) return samovar::processors();
  const int threads = Rf_isNumeric(option) && Rf_xlength(option) == 1 ? Rf_asInteger(option) : NA_INTEGER;
  if (threads == NA_INTEGER || threads < 1)
    Rcpp::stop("option samovar.threads must be a whole number of at least 1");
  return static_cast<size_t>(threads);
}
