# client: google-cloud-logging 3.17.0 for Python, structured
# sends: lines of JSON over TCP
# to: tcp
# packages: google-cloud-logging==3.17.0
from google.cloud.logging_v2.handlers import StructuredLogHandler

def extra(e):
    fields = {k: base64.b64encode(v).decode() if isinstance(v, bytes) else v for k, v in e.attrs.items()}
    trace = {"trace": "projects/shop/traces/" + e.trace["trace_id"], "span_id": e.trace["span_id"]} if e.trace else {}
    return {"extra": {"json_fields": {"logger": "shop.cart", **fields}, **trace}}

log_all(StructuredLogHandler(stream=output(), project_id="shop"), extra)
