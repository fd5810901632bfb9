#!/bin/sh
# Makes inst/extdata: captures and traces of two trials of a campaign made by ../tests/traces/make_campaign.py on a Linux kernel, three trials of the
# same campaign as a small campaign, and logs of the tests. The captures beacons-*.pcap.gz were made by make-beacons.sh.
#   sh make-extdata.sh                 from the campaign that the tests keep
#   sh make-extdata.sh FOLDER          from a new one, as root: python3 ../tests/traces/make_campaign.py ../tests/traces/campaign-small.json FOLDER
set -eu
cd "$(dirname "$0")"
campaign=${1:-../tests/traces/campaign-small}
to=../inst/extdata
mkdir -p "$to"
take() { # take NAME TRIAL: both captures, the sender's TCP_INFO samples and the queue's samples
  traces=$(echo "$campaign"/trials/"$2"*/traces)
  cp "$traces/src-eth1.pcap.gz" "$to/$1-sender.pcap.gz"
  cp "$traces/dst-eth1.pcap.gz" "$to/$1-receiver.pcap.gz"
  cp "$traces/src-tcp-info.csv.gz" "$to/$1-tcp-info.csv.gz"
  cp "$traces/rtr-queue.csv.gz" "$to/$1-queue.csv.gz"
}
take bulk buffer-newreno-9999KB-1500-r1
take window window-newreno-9KB-1500-r1

# The plan keeps its other trials, which are then not run.
rm -rf "$to/campaign"
mkdir -p "$to/campaign/trials"
cp "$campaign/plan.json" "$to/campaign/"
cp -r "$campaign"/trials/window-newreno-* "$to/campaign/trials/"

data=../tests/testthat/data
cp $data/iperf-client.csv "$to/iperf.csv"
cp $data/iperf3-client.json "$to/iperf3.json"
cp $data/iperf3-text-client.txt "$to/iperf3.txt"
cp $data/nuttcp.txt $data/ping.txt "$to/"
cp $data/ss-6.1.txt "$to/ss.txt"
cp $data/pause-frames-freebsd.csv "$to/pause-frames.csv"
cp $data/siftr-14.0-window-limited.log.gz "$to/siftr.log.gz"
cp $data/window-limited-src.pcap.gz "$to/siftr-sender.pcap.gz"

logs=$(echo ../tests/traces/applications/trials/fq-codel-r1-*/logs)
cp "$logs/web-client.out.gz" "$to/web-client.csv.gz"
cp "$logs/video-client.out.gz" "$to/video-client.csv.gz"
cp "$logs/call-client.out.gz" "$to/call-from.csv.gz"
cp "$logs/call-server.out.gz" "$to/call-to.csv.gz"
cp "$logs/query-1-client.out.gz" "$to/query-1.csv.gz"
cp "$logs/query-2-client.out.gz" "$to/query-2.csv.gz"
