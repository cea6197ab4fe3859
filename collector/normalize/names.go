package normalize

// names is what is read from events under which names: the one table of receivers, of the
// page docs/NAMES.md and of what a configuration may add to.
//
// A row that is no first one counts when the event is read to its end and has nothing
// under a name of a lower rank; of equal rank the member that comes first counts. A name
// with points is also a member of objects: log.level is "log.level" and "log":{"level"}.
// Members of objects come after all others. What does not count stays in attrs under the
// name that it came with.
var names = []row{
	{to: "time", rank: first, names: "time timestamp ts @timestamp"},
	{to: "time", rank: second, form: asTime, names: "@t _time Time Timestamp asctime date datetime eventTime event_time time_iso8601 timeMillis __REALTIME_TIMESTAMP"},
	{to: "time", rank: second, form: asTime, names: "record.time.repr record.time.timestamp t.$date"},
	{to: "time", rank: second, form: asInstant, names: "instant"},

	{to: "level", rank: first, names: "level severity lvl"},
	{to: "level", rank: second, names: "@l @level LEVEL Level LogLevel SeverityText detected_level levelname level_name log.level logLevel log_level loglevel severityText severity_text"},
	{to: "level", rank: second, names: "error_severity record.level.name"},
	{to: "level", rank: second, form: asOTel, names: "SEVERITY Severity SeverityNumber severityNumber severity_number"},
	{to: "level", rank: second, form: asSyslog, names: "PRIORITY"},
	{to: "level", rank: third, names: "s", beside: "ctx"},
	{to: "level", rank: third, names: "priority", beside: "rule output_fields"},

	{to: "msg", rank: first, names: "msg message log body"},
	{to: "msg", rank: second, names: "@m @message _msg MESSAGE Message RenderedMessage formattedMessage short_message record.message"},
	{to: "msg", rank: second, names: messageInFields},
	{to: "msg", rank: third, names: "@mt MessageTemplate event"},
	{to: "msg", rank: third, form: asText, names: "line"},
	{to: "msg", rank: third, names: "output", beside: "rule output_fields"},

	{to: "service", rank: first, names: "service app service.name"},
	{to: "service", rank: second, names: "SYSLOG_IDENTIFIER serviceName service_name PROGRAM"},

	{to: "logger", rank: first, names: "logger"},
	{to: "logger", rank: second, names: "@module SourceContext _logger log.logger loggerName logger_name record.name"},
	{to: "logger", rank: third, names: "name", beside: "levelname hostname level_index"},
	{to: "logger", rank: third, names: "channel", beside: "level_name"},
	{to: "logger", rank: third, names: "Category", beside: "LogLevel"},
	{to: "logger", rank: third, names: "target", beside: messageInFields},

	{to: "source", rank: first, names: "source"},
	{to: "source", rank: second, names: "caller @caller logging.googleapis.com/sourceLocation"},

	{to: "trace_id", rank: first, names: "trace_id traceId trace.id"},
	{to: "trace_id", rank: second, names: "@tr TraceID TraceId dd.trace_id otelTraceID traceID traceid logging.googleapis.com/trace"},
	{to: "span_id", rank: first, names: "span_id spanId span.id"},
	{to: "span_id", rank: second, names: "@sp SpanID SpanId dd.span_id otelSpanID spanID spanid logging.googleapis.com/spanId"},

	{to: "error", rank: first, names: "error"},
	{to: "error", rank: second, form: asError, names: "err exception exc_info exc_text exc thrown throwable @x Exception record.exception"},
	{to: "error.type", rank: second, names: "error.type error.kind exception.type exc_type exception_class errorType"},
	{to: "error.message", rank: second, names: "error.message error.msg exception.message exc_value exception_message errorMessage"},
	{to: "error.stack", rank: second, names: "error.stack error.stack_trace exception.stacktrace stack_trace stacktrace stackTrace"},
	{to: "error.stack", rank: second, form: asTrace, names: "stack traceback full_message"},

	{to: "host", rank: second, names: "hostname host.name HOSTNAME HOST _HOSTNAME MachineName"},
	{to: "thread", rank: second, names: "thread_name threadName thread.name process.thread.name ThreadName record.thread.name"},
	{to: "thread", rank: third, names: "ctx", beside: "s"},

	{to: "method", rank: second, names: "http.request.method http.method request_method RequestMethod req.method request.method"},
	{to: "path", rank: second, names: "url.path RequestPath"},
	{to: "query", rank: second, names: "url.query"},
	{to: "status", rank: second, names: "http.response.status_code http.status_code status_code statusCode StatusCode res.statusCode"},
	{to: "remote", rank: second, names: "client.address http.client_ip remote_addr remoteAddr remote_ip req.remoteAddress request.remote_ip"},
	{to: "user_agent", rank: second, names: "user_agent.original http.user_agent http_user_agent userAgent"},

	{to: "members", rank: first, names: "metadata attributes context attrs"},
	{to: "members", rank: first, names: "fields"},
	{to: "", rank: second, names: "rule output_fields level_index"}, // tell of others only
}

// Ranks of names. Those of the configuration come after the first ones.
const (
	first = iota + 1
	configured
	second
	third
)

// messageInFields is a message in an object under fields, as of Rust's tracing.
const messageInFields = "fields.message"

// manner tells how the value of a member is read; otherwise it is as that of a first name.
type manner uint8

const (
	asSlot    manner = iota
	asTime           // no number that is rather something else
	asInstant        // Log4j's {"epochSecond":1779972000,"nanoOfSecond":118000000}
	asOTel           // a name, or a number of OpenTelemetry
	asSyslog         // a name, or a number of syslog
	asError          // a text, or an object that tells of an error
	asTrace          // a text with a stack trace
	asText           // no number
)

// formNotes are for the page.
var formNotes = [...]string{
	asInstant: "an object of Log4j 2",
	asOTel:    "numbers are OpenTelemetry's",
	asSyslog:  "numbers are syslog's",
	asTrace:   "a text with a stack trace",
	asText:    "a text",
}
