# client: opentelemetry-sdk 1.45.2 for Python, its handler of logging
# sends: OTLP
# to: http
# packages: opentelemetry-sdk==1.45.2 opentelemetry-exporter-otlp-proto-http==1.45.2
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk.resources import Resource

provider = LoggerProvider(resource=Resource.create({"service.name": "shop"}))
provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(endpoint=TO + "/v1/logs")))
log = logging.getLogger("shop.cart")
log.setLevel(logging.DEBUG)
log.propagate = False
log.addHandler(LoggingHandler(logger_provider=provider))
for e in EVENTS:
    context = trace.SpanContext(int(e.trace["trace_id"], 16), int(e.trace["span_id"], 16), False, trace.TraceFlags(1)) if e.trace else trace.INVALID_SPAN_CONTEXT
    with trace.use_span(trace.NonRecordingSpan(context)):
        log.log(e.number, e.msg, exc_info=e.error, extra=e.attrs)
provider.shutdown()
