windows_after_handshake <- function(scale_a, scale_b, snaplen = 2000) {
  steps <- list(
    list(flags = 2, window = 64000, options = scale_a),
    list(from = "b", flags = 18, ack = 1, window = 65000, options = scale_b), list(seq = 1, ack = 1),
    list(from = "b", seq = 1, ack = 1, window = 500), list(from = "b", seq = 1, ack = 1, window = 500),
    list(from = "b", seq = 1, ack = 1, window = 600), list(from = "b", seq = 1, ack = 1, flags = 4, window = 0)
  )
  frames <- conversation(steps)
  advertised_window(read_pcap(write_capture(frames, snaplen = snaplen, wire_bytes = lengths(frames))), flow_a)
}

test_that("receive windows are scaled if both SYNs have the option, except the windows in the SYNs; windows in resets are ignored", {
  window <- windows_after_handshake(option_scale(3), option_scale(9))
  expect_equal(window$window_bytes, c(65000, 500 * 512, 600 * 512))
  expect_equal(window$t_ns, c(2, 4, 6) * 1e6)
  expect_equal(attr(window, "max_bytes"), 600 * 512)
  expect_equal(attr(window, "wscale"), 9L)
})

test_that("receive windows are not scaled if either end did not offer scaling", {
  for (window in list(windows_after_handshake(raw(), option_scale(9)), windows_after_handshake(option_scale(3), raw()))) {
    expect_equal(window$window_bytes, c(65000, 500, 600))
    expect_equal(attr(window, "wscale"), 0L)
  }
})

test_that("without the handshake, receive windows are not scaled, and the scale is NA", {
  window <- advertised_window(read_pcap(write_capture(conversation(list(list(from = "b", window = 500))))), flow_a)
  expect_equal(window$window_bytes, 500)
  expect_true(is.na(attr(window, "wscale")))
  expect_true(is.na(attr(window, "max_bytes")))
})

test_that("if the capture began after the handshake, the window of a flow is taken from the sender's logger, and no unscaled window is shown", {
  x <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
  flow <- data_flows(x)$flow[1]
  expect_equal(attr(scaled_window(x, flow), "max_bytes"), attr(advertised_window(x, flow), "max_bytes"))
  late <- x[bitwAnd(flags, 2L) == 0L]
  expect_null(scaled_window(late, flow))
  expect_true("window" %in% sequence_events(x, flow)$event)
  expect_false("window" %in% sequence_events(late, flow)$event)
  sender <- data.table::data.table(t_s = 1, cwnd_packets = 10, snd_wnd_bytes = 9e3, unacked_packets = 1, source = "tcp-info")
  expect_equal(series_of_rwnd(list(near = late, name = flow, tcp = TRUE, sender = sender))$value, 9)
})

test_that("the window scale is NA if the snapshot length cut a SYN's options, and no window is read if the snapshot length cut the window field", {
  for (snaplen in c(50, 54, 57)) {
    window <- windows_after_handshake(option_scale(3), option_scale(9), snaplen)
    expect_equal(window$window_bytes, c(65000, 500, 600))
    expect_true(is.na(attr(window, "wscale")))
  }
  none <- windows_after_handshake(option_scale(3), option_scale(9), 48)
  expect_equal(nrow(none), 0)
  expect_true(is.na(attr(none, "max_bytes")))
})

test_that("the largest receive window of each flow is equal to tcptrace's", {
  need_tool("tcptrace")
  for (path in unlist(lapply(all_pairs(), `[`, c("sender", "receiver")))) {
    coarse <- microsecond_copy(path)
    capture <- read_pcap(coarse)
    theirs <- tcptrace_table(coarse)
    for (i in seq_len(nrow(theirs))) {
      window <- advertised_window(capture, reverse_flow(theirs$flow[i]))
      # tcptrace's largest window does not include the window of the SYN.
      scaled <- window[t_ns > min(capture[flow == theirs$flow[i], t_ns])]
      expect_equal(max(scaled$window_bytes), as.double(theirs$max_win_adv[i]), info = theirs$flow[i])
    }
  }
})
