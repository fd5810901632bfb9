# SHA-256 of texts and files, by OpenSSL: it has the processor's own instructions for it.

sha256_texts <- function(texts) as.character(openssl::sha256(texts))

# NA for what cannot be read.
sha256_files <- function(paths) vapply(paths, \(p) tryCatch(sha256_file(p), error = \(e) NA_character_, warning = \(w) NA_character_), "", USE.NAMES = FALSE)

# A small file is read at once, which takes half as long as a connection does; a capture need not fit into memory.
sha256_file <- function(path) {
  size <- file.size(path)
  if (!is.na(size) && size < 1e6) return(as.character(openssl::sha256(readBin(path, "raw", size))))
  # Opened here, and as it is: file() without a mode would look into a compressed file, and the sum be that of what it holds.
  source <- file(path, "rb")
  on.exit(close(source))
  as.character(openssl::sha256(source))
}
