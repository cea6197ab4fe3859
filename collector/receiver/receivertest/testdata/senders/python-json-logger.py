# client: python-json-logger 4.2.0 for Python
# sends: lines of JSON over TCP
# to: tcp
# packages: python-json-logger==4.2.0
from pythonjsonlogger.json import JsonFormatter

handler = logging.StreamHandler(output())
handler.setFormatter(JsonFormatter(["asctime", "levelname", "name", "message"], datefmt="%Y-%m-%dT%H:%M:%S%z"))
log_all(handler)
