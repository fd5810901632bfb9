buffer.send_max=14912853
buffer.receive_max=14912853
buffer.socket_max.room=enough
buffer.receive_default=enough
