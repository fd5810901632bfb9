library(testthat)
library(samovar)

test_check("samovar")
