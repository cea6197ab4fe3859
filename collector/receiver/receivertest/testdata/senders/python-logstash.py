# client: python-logstash 0.4.8 for Python
# sends: lines of JSON over TCP
# to: tcp
# packages: python-logstash==0.4.8
import logstash

log_all(logstash.TCPLogstashHandler(HOST, PORT, version=1))
