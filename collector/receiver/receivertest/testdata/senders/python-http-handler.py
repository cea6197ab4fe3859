# client: HTTPHandler of Python 3.11
# sends: forms at /api/logs
# to: http
from logging.handlers import HTTPHandler

log_all(HTTPHandler(HOST + ":" + str(PORT), "/api/logs", method="POST"))
