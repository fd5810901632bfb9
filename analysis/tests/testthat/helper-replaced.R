# Run code with functions of the package replaced by others.
with_replaced <- function(code, ...) {
  space <- asNamespace("samovar")
  others <- list(...)
  own <- mget(names(others), envir = space)
  put <- \(functions) for (name in names(functions)) {
    unlockBinding(name, space)
    assign(name, functions[[name]], envir = space)
    lockBinding(name, space)
  }
  on.exit(put(own))
  put(others)
  code
}
