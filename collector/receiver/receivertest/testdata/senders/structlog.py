# client: structlog 26.1.0 for Python
# sends: lines of JSON over TCP
# to: tcp
# packages: structlog==26.1.0
import structlog

out = output()
structlog.configure(
    processors=[
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
        structlog.processors.dict_tracebacks,
        structlog.processors.JSONRenderer(),
    ],
    logger_factory=structlog.WriteLoggerFactory(out),
)
log = structlog.get_logger().bind(logger="shop.cart")
for e in EVENTS:
    getattr(log, {"warn": "warning", "fatal": "critical"}.get(e.level, e.level))(e.msg, **e.extra, **({"exc_info": e.error} if e.error else {}))
out.flush()
