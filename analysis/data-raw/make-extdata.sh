#!/bin/sh
# Makes inst/extdata: captures and traces of two trials of a campaign made by ../tests/traces/make_campaign.py on a Linux kernel.
#   sh make-extdata.sh                 from the campaign that the tests keep
#   sh make-extdata.sh FOLDER          from a new one, as root: python3 ../tests/traces/make_campaign.py ../tests/traces/campaign-small.json FOLDER
set -eu
cd "$(dirname "$0")"
campaign=${1:-../tests/traces/campaign-small}
to=../inst/extdata
mkdir -p "$to"
take() { # take NAME TRIAL: both captures and the sender's TCP_INFO samples
  traces=$(echo "$campaign"/trials/"$2"*/traces)
  cp "$traces/src-eth1.pcap.gz" "$to/$1-sender.pcap.gz"
  cp "$traces/dst-eth1.pcap.gz" "$to/$1-receiver.pcap.gz"
  cp "$traces/src-tcp-info.csv.gz" "$to/$1-tcp-info.csv.gz"
}
take bulk buffer-newreno-9999KB-1500-r1
take window window-newreno-9KB-1500-r1
