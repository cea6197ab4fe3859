# client: SysLogHandler of Python 3.11
# sends: syslog over UDP
# to: syslog-udp
from logging.handlers import SysLogHandler

h = SysLogHandler(address=(HOST, PORT))
h.setFormatter(logging.Formatter("shop[7]: %(message)s"))
log_all(h)
