# client: fluent-logger 0.11.1 for Python
# sends: Fluent forward
# to: forward
# packages: fluent-logger==0.11.1
from fluent import handler

h = handler.FluentHandler("shop.cart", host=HOST, port=PORT)
h.setFormatter(handler.FluentRecordFormatter(exclude_attrs=["args", "msg", "exc_info", "stack_info", "relativeCreated", "msecs", "thread", "threadName", "process", "processName"]))
log_all(h)
h.close()
