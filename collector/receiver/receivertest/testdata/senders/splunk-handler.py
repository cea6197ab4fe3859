# client: splunk-handler 3.0.0 for Python
# sends: Splunk's HTTP Event Collector
# to: http
# packages: splunk-handler==3.0.0 python-json-logger==4.2.0
from pythonjsonlogger.json import JsonFormatter
from splunk_handler import SplunkHandler

h = SplunkHandler(host=HOST, port=PORT, protocol="http", token="secret", index="main", flush_interval=0, retry_count=0, record_format=True)
h.setFormatter(JsonFormatter(["levelname", "name", "message"]))
log_all(h)
