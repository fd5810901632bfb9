halt rtr-queue
await_end rtr-queue
tell rtr-queue
exit 0
