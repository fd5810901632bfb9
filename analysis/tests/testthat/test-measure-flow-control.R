# An interface that sends at `fast` bit/s for a second and at `slow` bit/s for another, during which its ring rejects packets.
interface_at <- function(fast, slow, refused = 5, card = NULL) {
  t_s <- seq(0, 2, by = 0.01)
  sent <- ifelse(t_s <= 1, fast * t_s, fast + slow * (t_s - 1)) / 8
  x <- data.table::data.table(t_ns = t_s * 1e9, interface = "em1", tx_bytes = sent, tx_dropped = ifelse(t_s > 1.5, refused, 0))
  if (!is.null(card)) data.table::set(x, NULL, "card.rx_flow_control_xoff", card * pmin(t_s, 1))
  data.table::setattr(x, "epoch_s", 1700000000)
  x[]
}

state_of <- function(nic, seen = 0, lost_share = 0) {
  counters <- samovar:::flow_control_counters(nic, "em1")
  refused <- max(nic$tx_dropped) - min(nic$tx_dropped)
  flow_control_state(seen, counters$counted, refused, counters$held_share, lost_share)
}

test_that("the counters of a network card show whether the card swallowed PAUSE frames", {
  expect_equal(state_of(interface_at(80e6, 40e6, card = 120)), "swallowed")
  expect_equal(state_of(interface_at(80e6, 40e6, card = 0)), "none")
  expect_equal(state_of(interface_at(80e6, 40e6, card = 120), seen = 120), "seen")
})

test_that("without a card's counters, an overflowing ring indicates PAUSE frames if the interface slows down, and none if it keeps its full rate", {
  expect_equal(state_of(interface_at(80e6, 40e6)), "swallowed")
  expect_equal(state_of(interface_at(80e6, 80e6)), "none")
  expect_equal(samovar:::flow_control_counters(interface_at(80e6, 40e6), "em1")$held_share, 0.5, tolerance = 0.02)
})

test_that("packet loss although the interface's ring never overflowed indicates no flow control, and without loss the state is undecided", {
  expect_equal(state_of(interface_at(80e6, 40e6, refused = 0), lost_share = 0.1), "none")
  expect_equal(state_of(interface_at(80e6, 40e6, refused = 0)), "not told")
  expect_equal(flow_control_state(0, NA, NA, NA, 0.1), "not told")
})

test_that("an overflowing ring whose rate is unknown leaves the state undecided", {
  expect_equal(flow_control_state(0, NA, 5, NA, 0), "not told")
})

test_that("the rate of an interface is computed over windows that are longer than a pause", {
  x <- interface_at(80e6, 40e6)
  steps <- pmax(0, seq_len(nrow(x)) - 101) # of 10 ms, from 1 s on; sends in every other step
  x[, tx_bytes := ifelse(t_ns <= 1e9, tx_bytes, 80e6 / 8 * (1 + 0.01 * ceiling(steps / 2)))]
  expect_equal(samovar:::flow_control_counters(x, "em1")$held_share, 0.5, tolerance = 0.05)
})

test_that("drops are counted at the interface whose counter grew, whatever the first values of the counters", {
  x <- interface_at(80e6, 40e6)
  other <- data.table::copy(x)[, `:=`(interface = "em2", tx_dropped = 1000)]
  nic <- data.table::setattr(rbind(other, x), "epoch_s", 1700000000)
  expect_equal(samovar:::drops_of_nic(nic, NULL, NULL)[, .(t_s = t_ns / 1e9, packets)], data.table::data.table(t_s = 1.51, packets = 5))
})

test_that("PAUSE frames that the card sent, and durations of pauses, do not count as received PAUSE frames", {
  x <- interface_at(80e6, 40e6, refused = 0)
  x[, card.tx_flow_control_xoff := 7 * t_ns][, card.rx_pause_duration := t_ns][, card.mac_stats.xoff_recvd := c(rep(3, .N - 1L), 5)]
  expect_equal(samovar:::flow_control_counters(x, "em1")$counted, 2)
})

test_that("a PAUSE frame that the card counts under several names counts once, XON and XOFF count both", {
  counted <- function(...) {
    x <- interface_at(80e6, 40e6, refused = 0)
    counts <- c(...)
    data.table::set(x, NULL, paste0("card.", names(counts)), lapply(counts, \(most) c(rep(0, nrow(x) - 1L), most)))
    samovar:::flow_control_counters(x, "em1")$counted
  }
  expect_equal(counted(rx_flow_control_xon = 3, rx_flow_control_xoff = 4), 7) # igb, ixgbe
  expect_equal(counted(rx_pause_ctrl_phy = 9, rx_global_pause = 8, rx_pause_storm_warning_events = 5), 9) # mlx5
  expect_equal(counted(rx_xon_pause_rcvd = 3, rx_xoff_pause_rcvd = 4, rx_xoff_entered = 2), 7) # tg3
  expect_equal(counted(rx_pause = 7, rx_xon = 3, rx_xoff = 4, tx_pause = 20), 7)
  expect_equal(counted(rx_prio0_pause = 3, rx_prio1_pause = 4, rx_prio1_pause_duration = 90), 7)
})

test_that("a trace without samples, or of another interface, has no counts", {
  other <- interface_at(80e6, 40e6, card = 120)[, interface := "em0"]
  for (nic in list(other, other[0])) {
    data.table::setattr(nic, "epoch_s", 1700000000)
    expect_no_warning(found <- samovar:::flow_control_counters(nic, "em1"))
    expect_equal(found, list(counted = NA_real_, held_share = NA_real_))
    expect_null(local_drops(nic, interface = "em1"))
  }
  expect_equal(samovar:::flow_control_counters(rbind(interface_at(80e6, 40e6, card = 120), other), "em0")$counted, 120)
})

test_that("the state of a trial uses the largest counts among its flows", {
  metrics <- data.table::data.table(
    trial = c("a", "a", "a", "b", "b"), metric = c("pause_frames_seen", "pause_frames_seen", "local_drops_packets", "pause_frames_seen", "pause_frames_counted"),
    value = c(0, 4, 0, 0, 9)
  )
  expect_equal(samovar:::flow_control_of_trials(metrics)[, .(trial, state)], data.table::data.table(trial = c("a", "b"), state = c("seen", "swallowed")))
})
