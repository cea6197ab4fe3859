# client: elasticsearch 9.5.1 for Python, helpers.bulk
# sends: Elasticsearch's bulk API
# to: http
# packages: elasticsearch==9.5.1
import datetime
import traceback
from elasticsearch import Elasticsearch, helpers

docs = []
for e in EVENTS:
    doc = {"@timestamp": datetime.datetime.now(datetime.timezone.utc), "message": e.msg, "log": {"level": e.level, "logger": "shop.cart"},
           **{k: base64.b64encode(v).decode() if isinstance(v, bytes) else v for k, v in e.attrs.items()}}
    if e.error:
        doc["error"] = {"type": type(e.error).__name__, "message": str(e.error), "stack_trace": "".join(traceback.format_exception(e.error))}
    if e.trace:
        doc["trace"], doc["span"] = {"id": e.trace["trace_id"]}, {"id": e.trace["span_id"]}
    docs.append({"_op_type": "create", "_index": "logs-shop-default", "_source": doc})
helpers.bulk(Elasticsearch(TO), docs)
