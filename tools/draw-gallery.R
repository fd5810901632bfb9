# Draw the pictures of docs/reference/figures.md from recorded campaigns: Rscript tools/draw-gallery.R FOLDER RESULTS
#
# FOLDER is the campaign of tests/campaigns, unpacked. RESULTS is a folder of results with the quick profiles of netgear-buffer, netgear-cycles and
# netgear-txd. The other pictures are of analysis/tests/traces/campaign-small. Needs pdftoppm.

arguments <- commandArgs(TRUE)
library(samovar)

pictures <- list(
  small = list(
    list(figure = "time-series", show = list("cwnd", "inflight", "goodput", "queue"), overlay = "cc", facet = "mtu", rwnd = "9999KB"),
    list(figure = "time-sequence", part = "buffer", mtu = "1500", to = "0.6s"),
    list(figure = "bars", show = "rtt_median_ms", by = "rwnd", overlay = "cc", part = "window"),
    list(figure = "heatmap", show = "rtt_median_ms", rows = "cc", columns = "rwnd", part = "window"),
    list(figure = "scatter", x = "throughput_bps", y = "rtt_median_ms", overlay = "rwnd", part = "window"),
    list(figure = "buffer-cdf", part = "buffer"), list(figure = "throughput-by-rwnd", part = "window"), list(figure = "rtt-by-rwnd", part = "window"),
    list(figure = "cwnd-by-rwnd", part = "window"), list(figure = "metric-by-factor", factor = "rwnd", metric = "goodput_bps", part = "window"),
    list(figure = "queue-time", part = "buffer"), list(figure = "sender-time", part = "buffer", show = list("cwnd", "ssthresh", "srtt")),
    list(figure = "trial-time-series", part = "buffer"), list(figure = "sender-cdf", part = "window"), list(figure = "throughput-cdf", window = "1s", part = "window")
  ),
  recorded = list(
    list(figure = "distribution", show = "rtt", kind = "box"), list(figure = "tradeoff", of = "bulk"), list(figure = "rtt-cdf", part = "mixed"),
    list(figure = "rtt-time", part = "mixed"), list(figure = "jitter-cdf", part = "mixed", flow = "call"), list(figure = "design")
  ),
  cycles = list(list(figure = "cwnd-pause", cc = "newreno")),
  buffer = list(list(figure = "pause-buffer-cdf", method = "1")),
  txd = list(list(figure = "pause-to-drop"))
)

copy_of <- function(folder) {
  to <- tempfile("gallery-")
  dir.create(to)
  file.copy(list.files(folder, full.names = TRUE), to, recursive = TRUE)
  unlink(file.path(to, c("bundle", "tables")), recursive = TRUE)
  to
}

folders <- c(small = "analysis/tests/traces/campaign-small", recorded = arguments[1],
             vapply(c(cycles = "netgear-cycles", buffer = "netgear-buffer", txd = "netgear-txd"), \(name) file.path(arguments[2], name, "latest"), ""))
dir.create("docs/images/figures", recursive = TRUE, showWarnings = FALSE)
for (name in names(pictures)) {
  folder <- copy_of(folders[[name]])
  invisible(utils::capture.output(analyse_campaign(folder, figures = pictures[[name]], value = FALSE)))
  for (one in jsonlite::fromJSON(file.path(folder, "bundle", "figures.json"), simplifyVector = FALSE)) {
    figure <- Filter(\(entry) startsWith(one$name, entry$figure), pictures[[name]])
    figure <- figure[[which.max(nchar(vapply(figure, \(entry) entry$figure, "")))]]$figure
    system2("pdftoppm", c("-r", "60", "-png", "-singlefile", file.path(folder, "bundle", one$file), file.path("docs/images/figures", figure)))
  }
  unlink(folder, recursive = TRUE)
}
