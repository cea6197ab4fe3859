# client: python-logstash-async 4.1.0 for Python
# sends: lines of JSON over TCP
# to: tcp
# packages: python-logstash-async==4.1.0
from logstash_async.handler import AsynchronousLogstashHandler

log_all(AsynchronousLogstashHandler(HOST, PORT, database_path=None))
