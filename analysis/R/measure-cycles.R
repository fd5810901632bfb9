#' Cycles of the congestion window
#'
#' A cycle is the growth of cwnd from one collapse to the next. Linux shrinks cwnd over a round trip (proportional rate
#' reduction, RFC 6937), so the collapse is not where cwnd falls but where the kernel decides: the first sample at which
#' `ca_state` is Recovery (3), Loss (4) or CWR (2), or at which ssthresh has gone down with cwnd or after a retransmission.
#' ssthresh set without either (HyStart leaving slow start) ends no cycle. What follows until the state is Open or
#' Disorder again, a time-out within a recovery say, belongs to the same collapse.
#'
#' The first cycle of a connection is slow start, which overshoots the buffer by up to its size before the loss is seen; it is
#' flagged (`first`). A collapse that the kernel took back (ssthresh rises again: packets had been reordered, RFC 4015) ends no cycle.
#'
#' @param samples TCP_INFO samples of one socket: `t_s`, `cwnd_packets`, `ssthresh_packets`, `ca_state`, `total_retrans_packets`.
#' @return A data.table, one row per collapse: `cycle`, `start_s` (the collapse before, or the first sample), `before_s` (last
#'   sample before the collapse), `end_s` (the sample that shows it), `cwnd_packets` (in force at `before_s`), `cause`
#'   ("recovery", "timeout", "cwr", "ssthresh"), `first`, `counts` (whether it tells of the buffer: caused by loss, and not the
#'   first when later ones exist).
#' @source RFC 5681, RFC 6937; tcp_ca_state in linux/tcp.h.
#' @export
cwnd_cycles <- function(samples) {
  x <- samples[order(samples$t_s)]
  at <- lasting_collapses(x)
  if (length(at) == 0) return(no_cycles)
  cycles <- data.table(
    cycle = seq_along(at),
    start_s = x$t_s[c(1L, at[-length(at)])],
    before_s = x$t_s[at - 1L],
    end_s = x$t_s[at],
    cwnd_packets = as.double(x$cwnd_packets[at - 1L]),
    cause = mapply(collapse_cause, at, until_next(at, x), MoreArgs = list(x = x)),
    first = seq_along(at) == 1L
  )
  by_loss <- cycles$cause %in% loss_causes
  cycles[, counts := by_loss & !(first & sum(by_loss) > 1L)][]
}

no_cycles <- data.table(
  cycle = integer(), start_s = double(), before_s = double(), end_s = double(), cwnd_packets = double(),
  cause = character(), first = logical(), counts = logical()
)

loss_causes <- c("recovery", "timeout")

# Rows of the collapses that were not taken back: ssthresh stays, or falls, until the next one.
lasting_collapses <- function(x) {
  at <- which(collapses(x))
  restored <- mapply(\(i, j) max(x$ssthresh_packets[i:j]) > x$ssthresh_packets[i], at, until_next(at, x))
  at[!as.logical(restored)]
}

until_next <- function(at, x) c(at[-1] - 1L, if (length(at) > 0) nrow(x))

ca_cwr <- 2L
ca_loss_states <- c(3L, 4L)

collapses <- function(x) {
  if (nrow(x) < 2) return(logical(nrow(x)))
  now <- x$ca_state
  was <- c(0L, now[-length(now)])
  lost <- now %in% ca_loss_states & !was %in% ca_loss_states
  asked <- now == ca_cwr & !was %in% c(ca_cwr, ca_loss_states)
  fell <- !was %in% c(ca_cwr, ca_loss_states) & went(x$ssthresh_packets, -1) &
    (went(x$cwnd_packets, -1) | went(x$total_retrans_packets, 1))
  found <- lost | asked | fell
  found[1] <- FALSE
  found
}

went <- function(values, sign) c(FALSE, sign * diff(as.double(values)) > 0) %in% TRUE

# A recovery shorter than the sampling interval shows only as retransmissions.
collapse_cause <- function(i, j, x) {
  episode <- i + which(!x$ca_state[i:j] %in% c(ca_cwr, ca_loss_states))[1] - 1L
  until <- if (is.na(episode)) j else episode
  if (x$ca_state[i] == 4L) return("timeout")
  if (any(x$ca_state[i:until] %in% ca_loss_states)) return("recovery")
  if (x$total_retrans_packets[until] > x$total_retrans_packets[i - 1L]) return("recovery")
  if (x$ca_state[i] == ca_cwr) "cwr" else "ssthresh"
}
