launch bulk-client 21 bulk-client.out sh -c 'unanswered=$0 most=$1; shift; timeout --foreground -s INT "$most" ping "$@"; code=$?; [ "$code" = 0 ] || [ "$code" = "$unanswered" ] || [ "$code" = 124 ]' 2 9 \
  -n -c 7 -i 1 -s 56 -S 172.16.10.2 172.16.11.2
