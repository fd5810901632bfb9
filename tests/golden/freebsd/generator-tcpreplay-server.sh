launch bulk-client 21 bulk-client.out python3 -IS -c 'import socket, sys
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind((sys.argv[1], int(sys.argv[2])))
while True: sink.recv(65536)' 172.16.11.2 5001
