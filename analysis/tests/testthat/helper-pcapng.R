# pcapng files made block by block (draft-ietf-opsawg-pcapng); `order` is the byte order of numbers, "little" or "big".

ng <- function(order = "little") {
  number <- \(x, bytes) if (order == "little") rev(big(x, bytes)) else big(x, bytes)
  padded <- \(x) c(x, raw(-length(x) %% 4))
  block <- function(type, body) {
    size <- number(12 + length(body), 4)
    c(number(type, 4), size, body, size)
  }
  option <- \(code, value) padded(c(number(code, 2), number(length(value), 2), value))
  options <- \(...) if (...length()) c(unlist(list(...)), raw(4)) else raw()
  stamp <- \(count) c(number(count %/% 2^32, 4), number(count %% 2^32, 4))
  list(
    number = number, block = block, option = option,
    section = \(...) block(0x0a0d0d0a, c(number(0x1a2b3c4d, 4), number(1, 2), number(0, 2), rep(as.raw(0xff), 8), options(...))),
    interface = \(link = 1, snaplen = 0, ...) block(1, c(number(link, 2), raw(2), number(snaplen, 4), options(...))),
    enhanced = \(frame, count, interface = 0, wire = length(frame), ...) {
      block(6, c(number(interface, 4), stamp(count), number(length(frame), 4), number(wire, 4), padded(frame), options(...)))
    },
    packet = \(frame, count, interface = 0, wire = length(frame)) {
      block(2, c(number(interface, 2), raw(2), stamp(count), number(length(frame), 4), number(wire, 4), padded(frame)))
    },
    simple = \(frame, wire = length(frame)) block(3, c(number(wire, 4), padded(frame))),
    statistics = \(interface, ...) block(5, c(number(interface, 4), raw(8), options(...)))
  )
}

zstd_copy <- function(path, level = "-3", file = tempfile(fileext = ".zst")) {
  need_tool("zstd")
  status <- system2("zstd", c("-q", "-f", level, path, "-o", file))
  stopifnot(status == 0L)
  file
}
