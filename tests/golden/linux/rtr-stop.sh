halt rtr-queue
await_end rtr-queue
tell rtr-queue
began 
exit 0
