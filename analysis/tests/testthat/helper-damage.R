# Damage files: change, remove, duplicate or cut off bytes, as failing disks and killed programs do, or at random.
damaged <- function(bytes) {
  for (k in seq_len(sample(4, 1))) {
    n <- length(bytes)
    if (n < 4) break
    at <- sample(n - 1, 1)
    span <- at:min(n, at + sample(c(1, 8, 200), 1))
    bytes <- switch(sample(6, 1),
      replace(bytes, at, as.raw(sample(0:255, 1))),
      replace(bytes, at, sample(charToRaw("0123456789-.,;:=\t\n\r ex"), 1)),
      bytes[-span],
      append(bytes, bytes[span], at),
      bytes[seq_len(at)],
      append(bytes, as.raw(sample(0:255, 40, TRUE)), at)
    )
  }
  bytes
}
