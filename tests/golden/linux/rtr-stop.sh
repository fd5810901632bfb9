halt rtr-queue
began 
await_end rtr-queue
tell rtr-queue
exit 0
