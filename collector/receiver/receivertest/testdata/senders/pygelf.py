# client: pygelf 0.4.3 for Python
# sends: GELF over TCP
# to: gelf-tcp
# packages: pygelf==0.4.3
from pygelf import GelfTcpHandler

log_all(GelfTcpHandler(host=HOST, port=PORT, include_extra_fields=True))
