# client: ecs-logging 2.3.0 for Python
# sends: lines of JSON over TCP
# to: tcp
# packages: ecs-logging==2.3.0
import ecs_logging

handler = logging.StreamHandler(output())
handler.setFormatter(ecs_logging.StdlibFormatter())
log_all(handler, lambda e: {"extra": {**e.attrs, **({"trace.id": e.trace["trace_id"], "span.id": e.trace["span_id"]} if e.trace else {})}})
