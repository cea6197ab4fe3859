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
	{to: "time", rank: second, form: asTime, names: "record.time.repr record.time.timestamp t.$date _meta.date"},
	{to: "time", rank: second, form: asInstant, names: "instant"},
	{to: "time", rank: third, form: asTime, names: "created", beside: "relativeCreated"},
	{to: "time", rank: third, form: asTime, names: "startTime", beside: "categoryName"},

	{to: "level", rank: first, names: "level severity lvl"},
	{to: "level", rank: second, names: "@l @level LEVEL Level LogLevel SeverityText detected_level levelname level_name log.level logLevel log_level loglevel severityText severity_text"},
	{to: "level", rank: second, names: "error_severity record.level.name _meta.logLevelName context.logLevel level.levelStr"},
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
	{to: "msg", rank: third, form: asText, names: "0", beside: "_meta"},

	{to: "service", rank: first, names: "service app service.name"},
	{to: "service", rank: second, names: "SYSLOG_IDENTIFIER serviceName service_name PROGRAM"},
	{to: "service", rank: third, names: "application", beside: "level_index"},

	{to: "logger", rank: first, names: "logger"},
	{to: "logger", rank: second, names: "@module SourceContext Properties.SourceContext categoryName _logger log.logger loggerName logger_name logger.name record.name _meta.name"},
	{to: "logger", rank: third, names: "context.namespace", beside: "context.logLevel"},
	{to: "logger", rank: third, names: "name", beside: "levelname hostname level_index location level=number"},
	{to: "logger", rank: third, names: "channel", beside: "level_name"},
	{to: "logger", rank: third, names: "Category", beside: "LogLevel"},
	{to: "logger", rank: third, names: "target", beside: messageInFields},

	{to: "source", rank: first, names: "source"},
	{to: "source", rank: second, names: "caller @caller logging.googleapis.com/sourceLocation"},

	{to: "trace_id", rank: first, names: "trace_id traceId trace.id"},
	{to: "trace_id", rank: second, names: "@tr TraceID TraceId dd.trace_id otelTraceID traceID traceid"},
	{to: "trace_id", rank: second, form: asTracePath, names: "logging.googleapis.com/trace"},
	{to: "span_id", rank: first, names: "span_id spanId span.id"},
	{to: "span_id", rank: second, names: "@sp SpanID SpanId dd.span_id otelSpanID spanID spanid logging.googleapis.com/spanId"},

	{to: "error", rank: first, names: "error"},
	{to: "error", rank: second, form: asError, names: "err exception exc_info exc_text exc thrown throwable @x Exception _exception ExceptionDetail exceptions record.exception"},
	{to: "error", rank: third, form: asError, names: "2", beside: "_meta"},
	{to: "error.type", rank: second, names: "error.type error.kind exception.type exc_type exception_class error_type errorType message.errorType"},
	{to: "error.message", rank: second, names: "error.message error.msg exception.message exc_value exception_message errorMessage message.errorMessage"},
	{to: "error.stack", rank: second, names: "error.stack error.stack_trace exception.stacktrace stack_trace stacktrace stackTrace message.stackTrace"},
	{to: "error.stack", rank: second, form: asTrace, names: "stack traceback full_message errorVerbose StackTrace"},
	{to: "error.stack", rank: third, form: asTrace, names: "text", beside: "record"},

	{to: "host", rank: second, names: "hostname host.name HOSTNAME HOST _HOSTNAME MachineName hostName host.hostname _meta.hostname"},
	{to: "thread", rank: second, names: "thread_name threadName _thread thread.name process.thread.name ThreadName logger.thread_name record.thread.name"},
	{to: "thread", rank: third, names: "ctx", beside: "s"},

	{to: "method", rank: second, names: "http.request.method http.method request_method RequestMethod req.method request.method"},
	{to: "path", rank: second, names: "url.path RequestPath"},
	{to: "query", rank: second, names: "url.query"},
	{to: "status", rank: second, names: "http.response.status_code http.status_code status_code statusCode StatusCode res.statusCode"},
	{to: "remote", rank: second, names: "client.address http.client_ip remote_addr remoteAddr remote_ip req.remoteAddress request.remote_ip"},
	{to: "user_agent", rank: second, names: "user_agent.original http.user_agent http_user_agent userAgent"},

	{to: "members", rank: first, names: "metadata attributes context attrs"},
	{to: "members", rank: first, names: "fields"},
	{to: "members", rank: last, names: "mdc contextMap kvpList record.extra"},
	{to: "members", rank: last, names: "extra", beside: "logsource level_name"},
	{to: "members", rank: last, names: "1", beside: "_meta"},
	{to: "", rank: second, names: "rule output_fields level_index location logsource record relativeCreated _meta"}, // tell of others only
}

// Ranks of names. Those of the configuration come after the first ones.
const (
	first = iota + 1
	configured
	second
	third
	last // after all others: members of objects, and of those in a list
)

// messageInFields is a message in an object under fields, as of Rust's tracing. Such names
// are looked up when the members of the object are read.
const messageInFields = "fields.message"

// ofNumber is the mark of an event whose level is a number.
const ofNumber = "level=number"

// manner tells how the value of a member is read; otherwise it is as that of a first name.
type manner uint8

const (
	asSlot      manner = iota
	asTime             // no number that is rather something else
	asInstant          // Log4j's {"epochSecond":1779972000,"nanoOfSecond":118000000}
	asOTel             // a name, or a number of OpenTelemetry
	asSyslog           // a name, or a number of syslog
	asError            // a text, or an object that tells of an error
	asTrace            // a text with a stack trace
	asText             // no number
	asTracePath        // an id, or Google's projects/P/traces/ID, which stays as well
)

// formNotes are for the page.
var formNotes = [...]string{
	asInstant: "an object of Log4j 2",
	asOTel:    "numbers are OpenTelemetry's",
	asSyslog:  "numbers are syslog's",
	asTrace:   "a text with a stack trace",
	asText:    "a text",

	asTracePath: "also the end of `projects/P/traces/ID`",
}
