package normalize

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// libraries are lines in the forms that the libraries write, made after their
// documentation and not recorded, and what they become. A time that is not valid is
// that of receipt.
var libraries = []struct{ name, in, want string }{
	// Go
	{"slog", `{"time":"2026-05-28T14:40:00.5+02:00","level":"WARN","source":{"function":"main.main","file":"main.go","line":16},"msg":"hello","count":3}`,
		`{"time":"2026-05-28T12:40:00.500000000Z","level":"WARN","msg":"hello","source":{"function":"main.main","file":"main.go","line":16},"attrs":{"count":3}}`},
	{"zap", `{"level":"info","ts":1779972000.25,"logger":"shop.cart","caller":"zap/main.go:21","msg":"failed to fetch URL","url":"http://example.com","attempt":3,"backoff":1}`,
		`{"time":"2026-05-28T12:40:00.250000000Z","level":"INFO","msg":"failed to fetch URL","logger":"shop.cart","source":"zap/main.go:21","attrs":{"url":"http://example.com","attempt":3,"backoff":1}}`},
	{"zerolog", `{"level":"error","error":"file open failed!","time":1779972000,"message":"write failed"}`,
		`{"time":"2026-05-28T12:40:00.000000000Z","level":"ERROR","msg":"write failed","error":"file open failed!","attrs":{"error.fingerprint":"1-e30f6ad31cfb2b15"}}`},
	{"logrus", `{"animal":"walrus","level":"warning","msg":"The group's number increased tremendously!","number":122,"time":"2026-05-28T12:40:00Z"}`,
		`{"time":"2026-05-28T12:40:00.000000000Z","level":"WARN","msg":"The group's number increased tremendously!","attrs":{"animal":"walrus","number":122}}`},
	{"hclog", `{"@level":"debug","@message":"starting","@module":"vault.core","@timestamp":"2026-05-28T12:40:00.000000Z","version":1}`,
		`{"time":"2026-05-28T12:40:00.000000000Z","level":"DEBUG","msg":"starting","logger":"vault.core","attrs":{"version":1}}`},
	{"OpenTelemetry Go, to stdout", `{"Timestamp":"2026-05-28T12:40:00Z","ObservedTimestamp":"2026-05-28T12:40:01Z","Severity":13,"SeverityText":"WARN","Body":{"Type":"String","Value":"x"},"TraceID":"4bf92f3577b34da6a3ce929d0e0e4736","SpanID":"00f067aa0ba902b7","TraceFlags":"01"}`,
		`{"time":"2026-05-28T12:40:00.000000000Z","level":"WARN","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","span_id":"00f067aa0ba902b7","attrs":{"ObservedTimestamp":"2026-05-28T12:40:01Z","Body":{"Type":"String","Value":"x"},"TraceFlags":"01","SeverityText":"WARN"}}`},
	// Java
	{"Log4j 2, JsonLayout", `{"instant":{"epochSecond":1779972000,"nanoOfSecond":118000000},"thread":"main","level":"INFO","loggerName":"HelloWorld","message":"Hello, world","endOfBatch":false,"threadId":1,"threadPriority":5}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"Hello, world","logger":"HelloWorld","attrs":{"thread":"main","endOfBatch":false,"threadId":1,"threadPriority":5}}`},
	{"Log4j 2, JsonLayout of before", `{"timeMillis":1779972000118,"thread":"main","level":"INFO","loggerName":"HelloWorld","message":"Hello, world"}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"Hello, world","logger":"HelloWorld","attrs":{"thread":"main"}}`},
	{"Log4j 2, ECS", `{"@timestamp":"2026-05-28T12:40:00.118Z","ecs.version":"1.2.0","log.level":"ERROR","message":"Hello, error!","process.thread.name":"main","log.logger":"org.example.App"}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"ERROR","msg":"Hello, error!","logger":"org.example.App","attrs":{"ecs.version":"1.2.0","thread":"main"}}`},
	{"ECS, nested", `{"@timestamp":"2026-05-28T12:40:00.118Z","log":{"level":"WARN","logger":"org.example.App","origin":{"file":{"line":7}}},"message":"x","service":{"name":"shop","version":"2"},"trace":{"id":"4bf92f3577b34da6a3ce929d0e0e4736"},"span":{"id":"00f067aa0ba902b7"},"transaction":{"id":"1"}}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"WARN","msg":"x","service":"shop","logger":"org.example.App","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","span_id":"00f067aa0ba902b7","attrs":{"transaction":{"id":"1"},"log":{"origin":{"file":{"line":7}}},"service":{"version":"2"}}}`},
	{"Logback", `{"sequenceNumber":0,"timestamp":1779972000118,"nanoseconds":118000000,"level":"INFO","threadName":"main","loggerName":"org.example.App","mdc":{},"message":"hello {}","arguments":["x"],"throwable":null}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"hello {}","logger":"org.example.App","attrs":{"sequenceNumber":0,"nanoseconds":118000000,"arguments":["x"],"thread":"main","throwable":null}}`},
	{"logstash-logback-encoder", `{"@timestamp":"2026-05-28T14:40:00.118+02:00","@version":"1","message":"hello","logger_name":"org.company.stack.Sample","thread_name":"main","level":"WARN","level_value":30000}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"WARN","msg":"hello","logger":"org.company.stack.Sample","attrs":{"@version":"1","level_value":30000,"thread":"main"}}`},
	// .NET
	{"Serilog, compact", `{"@t":"2026-05-28T12:40:00.0789770Z","@mt":"Hello, {User}","@l":"Warning","@tr":"4bf92f3577b34da6a3ce929d0e0e4736","@sp":"00f067aa0ba902b7","User":"nblumhardt","SourceContext":"Shop.Cart"}`,
		`{"time":"2026-05-28T12:40:00.078977000Z","level":"WARN","msg":"Hello, {User}","logger":"Shop.Cart","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","span_id":"00f067aa0ba902b7","attrs":{"User":"nblumhardt"}}`},
	{"Serilog, compact and rendered", `{"@t":"2026-05-28T12:40:00.0789770Z","@mt":"Hello, {User}","@m":"Hello, \"nblumhardt\"","@i":"7a8b9c0d","User":"nblumhardt"}`,
		`{"time":"2026-05-28T12:40:00.078977000Z","level":"INFO","msg":"Hello, \"nblumhardt\"","attrs":{"@i":"7a8b9c0d","User":"nblumhardt","@mt":"Hello, {User}"}}`},
	{"Serilog, JsonFormatter", `{"Timestamp":"2026-05-28T14:40:00.1234567+02:00","Level":"Error","MessageTemplate":"Hello, {User}","RenderedMessage":"Hello, x","TraceId":"4bf92f3577b34da6a3ce929d0e0e4736","SpanId":"00f067aa0ba902b7","Properties":{"User":"x","SourceContext":"Shop.Cart"}}`,
		`{"time":"2026-05-28T12:40:00.123456700Z","level":"ERROR","msg":"Hello, x","logger":"Shop.Cart","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","span_id":"00f067aa0ba902b7","attrs":{"MessageTemplate":"Hello, {User}","Properties":{"User":"x"}}}`},
	{"Microsoft.Extensions.Logging", `{"Timestamp":"2026-05-28T12:40:00Z","EventId":0,"LogLevel":"Critical","Category":"Shop.Cart","Message":"Hello World!","State":{"{OriginalFormat}":"Hello World!"}}`,
		`{"time":"2026-05-28T12:40:00.000000000Z","level":"FATAL","msg":"Hello World!","logger":"Shop.Cart","attrs":{"EventId":0,"State":{"{OriginalFormat}":"Hello World!"}}}`},
	{"NLog", `{ "time": "2026-05-28 12:40:00.1234", "level": "ERROR", "logger": "Shop.Cart", "message": "hello, world", "nested": { "a": "b" } }`,
		`{"time":"2026-05-28T12:40:00.123400000Z","level":"ERROR","msg":"hello, world","logger":"Shop.Cart","attrs":{"nested":{"a":"b"}}}`},
	// Python
	{"python-json-logger", `{"asctime": "2026-05-28 12:40:00,118", "levelname": "CRITICAL", "name": "shop.cart", "message": "hello", "exc_info": null}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"FATAL","msg":"hello","logger":"shop.cart","attrs":{"exc_info":null}}`},
	{"structlog", `{"event": "hello", "level": "info", "logger": "shop", "timestamp": "2026-05-28T12:40:00.5Z", "user": 1}`,
		`{"time":"2026-05-28T12:40:00.500000000Z","level":"INFO","msg":"hello","logger":"shop","attrs":{"user":1}}`},
	{"OpenTelemetry Python, in its logging", `{"asctime": "2026-05-28 12:40:00,118", "levelname": "INFO", "message": "hello", "otelTraceID": "4bf92f3577b34da6a3ce929d0e0e4736", "otelSpanID": "00f067aa0ba902b7"}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"hello","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","span_id":"00f067aa0ba902b7"}`},
	{"OpenTelemetry Python, to the console", `{"body": "hello", "severity_number": 17, "severity_text": "ERROR", "attributes": {"a": 1}, "timestamp": "2026-05-28T12:40:00.000000Z", "trace_id": "0x4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "0x00f067aa0ba902b7"}`,
		`{"time":"2026-05-28T12:40:00.000000000Z","level":"ERROR","msg":"hello","trace_id":"0x4bf92f3577b34da6a3ce929d0e0e4736","span_id":"0x00f067aa0ba902b7","attrs":{"a":1,"severity_text":"ERROR"}}`},
	// PHP, Ruby, Rust
	{"Monolog", `{"message":"My logger is now ready","context":{"user":1},"level":250,"level_name":"NOTICE","channel":"my_logger","datetime":"2026-05-28T14:40:00.123456+02:00","extra":{}}`,
		`{"time":"2026-05-28T12:40:00.123456000Z","level":"INFO+2","msg":"My logger is now ready","logger":"my_logger","attrs":{"user":1,"level_name":"NOTICE"}}`},
	{"Ruby, semantic_logger", `{"host":"h","application":"shop","timestamp":"2026-05-28T12:40:00.123456Z","level":"warn","level_index":3,"pid":1,"thread":"1","name":"Cart","message":"hello"}`,
		`{"time":"2026-05-28T12:40:00.123456000Z","level":"WARN","msg":"hello","service":"shop","logger":"Cart","attrs":{"host":"h","pid":1,"thread":"1","level_index":3}}`},
	{"Rust, tracing-subscriber", `{"timestamp":"2026-05-28T12:40:00.821315Z","level":"INFO","fields":{"message":"preparing to shave yaks","number_of_yaks":3},"target":"fmt_json"}`,
		`{"time":"2026-05-28T12:40:00.821315000Z","level":"INFO","msg":"preparing to shave yaks","logger":"fmt_json","attrs":{"number_of_yaks":3}}`},
	{"Rust, tracing-subscriber, flat", `{"timestamp":"2026-05-28T12:40:00.821315Z","level":"TRACE","message":"hello","excitement":"yay!","target":"fmt_json::yak_shave","span":{"yak":3,"name":"shave"}}`,
		`{"time":"2026-05-28T12:40:00.821315000Z","level":"TRACE","msg":"hello","attrs":{"excitement":"yay!","target":"fmt_json::yak_shave","span":{"yak":3,"name":"shave"}}}`},
	// JavaScript
	{"pino", `{"level":30,"time":1779972000118,"pid":17,"hostname":"web-1","msg":"hello world"}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"hello world","attrs":{"pid":17,"host":"web-1"}}`},
	{"bunyan", `{"name":"myapp","hostname":"web-1","pid":17,"level":40,"msg":"hi","time":"2026-05-28T12:40:00.118Z","v":0}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"WARN","msg":"hi","logger":"myapp","attrs":{"pid":17,"v":0,"host":"web-1"}}`},
	{"log4js, its layout of the documentation", `{"startTime":"2026-05-28T12:40:00.118Z","categoryName":"shop","data":["hello"],"level":{"level":40000,"levelStr":"ERROR","colour":"red"},"context":{},"pid":7}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"ERROR","logger":"shop","attrs":{"data":["hello"],"pid":7,"level":{"level":40000,"colour":"red"}}}`},
	{"winston", `{"level":"error","message":"hello","service":"user-service","timestamp":"2026-05-28T12:40:00.118Z"}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"ERROR","msg":"hello","service":"user-service"}`},
	{"pino, without hostname", `{"level":30,"time":1779972000118,"pid":17,"name":"shop","msg":"hello"}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"hello","logger":"shop","attrs":{"pid":17}}`},
	{"no logger", `{"level":"info","time":1779972000118,"name":"shop","msg":"hello"}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"hello","attrs":{"name":"shop"}}`},
	{"Roarr", `{"context":{"namespace":"shop.cart","logLevel":40,"n":1,"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"},"message":"hello","sequence":"0","time":1779972000118,"version":"2.0.0"}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"WARN","msg":"hello","logger":"shop.cart","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","attrs":{"n":1,"sequence":"0","version":"2.0.0"}}`},
	{"no Roarr", `{"context":{"namespace":"prod"},"message":"hello","time":1779972000118}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"hello","attrs":{"namespace":"prod"}}`},
	{"tslog", `{"0":"hello","1":{"n":1,"span_id":"00f067aa0ba902b7"},"_meta":{"runtime":"Nodejs","hostname":"web-1","name":"shop.cart","date":"2026-05-28T12:40:00.118Z","logLevelId":4,"logLevelName":"INFO"}}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"hello","logger":"shop.cart","span_id":"00f067aa0ba902b7","attrs":{"n":1,"host":"web-1","_meta":{"runtime":"Nodejs","logLevelId":4}}}`},
	// more of Python and Java
	{"loguru", `{"text":"x | hello\n","record":{"extra":{"n":1,"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"},"exception":null,"level":{"name":"INFO","no":20},"message":"hello","name":"shop.cart","time":{"repr":"2026-05-28 12:40:00.118+00:00","timestamp":1779972000.118}}}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"hello","logger":"shop.cart","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","attrs":{"text":"x | hello\n","n":1,"record":{"exception":null,"level":{"no":20},"time":{"timestamp":1779972000.118}}}}`},
	{"python-logstash-async", `{"@timestamp":"2026-05-28T12:40:00.118Z","@version":"1","host":"h","level":"INFO","logsource":"h","message":"hello","extra":{"n":1,"logger_name":"shop.cart","thread_name":"main"}}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"hello","logger":"shop.cart","attrs":{"@version":"1","host":"h","n":1,"thread":"main","logsource":"h"}}`},
	{"AWS Lambda Powertools", `{"level":"INFO","location":"f:89","message":"hello","timestamp":"2026-05-28 12:40:00,118+0000","service":"shop","name":"shop.cart"}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"hello","service":"shop","logger":"shop.cart","attrs":{"location":"f:89"}}`},
	{"HTTPHandler, its form", `{"name":"shop","msg":"hello","levelname":"INFO","created":"1779972000.118","relativeCreated":"7.5"}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"hello","logger":"shop","attrs":{"relativeCreated":"7.5"}}`},
	{"Logback, with pairs", `{"timestamp":1779972000118,"level":"INFO","loggerName":"shop.cart","mdc":{"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"},"kvpList":[{"n":"1"},{"m":"2"}],"message":"hello"}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"hello","logger":"shop.cart","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","attrs":{"n":"1","m":"2"}}`},
	{"a list of other things", `{"timestamp":1779972000118,"level":"INFO","kvpList":[{"n":"1"},2],"mdc":7,"message":"hello"}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"hello","attrs":{"kvpList":[{"n":"1"},2],"mdc":7}}`},
	{"Monolog, with extra", `{"message":"hello","context":{},"level":200,"level_name":"INFO","channel":"shop","datetime":"2026-05-28T12:40:00.118+00:00","extra":{"url":"/"}}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"hello","logger":"shop","attrs":{"url":"/","level_name":"INFO"}}`},
	// shippers and services
	{"Datadog", `{"message":"hello","level":"info","timestamp":1779972000118,"logger":{"name":"shop.cart","thread_name":"main","method":"f"}}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"hello","logger":"shop.cart","attrs":{"thread":"main","logger":{"method":"f"}}}`},
	{"Google Cloud, a trace", `{"severity":"INFO","message":"hello","time":"2026-05-28T12:40:00.118Z","logging.googleapis.com/trace":"projects/p/traces/4bf92f3577b34da6a3ce929d0e0e4736"}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"hello","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","attrs":{"logging.googleapis.com/trace":"projects/p/traces/4bf92f3577b34da6a3ce929d0e0e4736"}}`},
	{"Google Cloud, an id", `{"severity":"INFO","message":"hello","time":"2026-05-28T12:40:00.118Z","logging.googleapis.com/trace":"4bf92f3577b34da6a3ce929d0e0e4736"}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"hello","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"}`},
	{"ids in an object that is merged", `{"level":"info","message":"hello","time":1779972000118,"fields":{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","span.id":"00f067aa0ba902b7","logger":"shop"}}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"hello","logger":"shop","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","span_id":"00f067aa0ba902b7"}`},
	{"GELF", `{"version":"1.1","host":"example.org","short_message":"A short message","full_message":"Backtrace","timestamp":1779972000.3072,"level":3,"_user_id":9001}`,
		`{"time":"2026-05-28T12:40:00.307200000Z","level":"ERROR","msg":"A short message","attrs":{"version":"1.1","host":"example.org","_user_id":9001,"full_message":"Backtrace"}}`},
	{"journalctl -o json", `{"__REALTIME_TIMESTAMP":"1779972000118000","PRIORITY":"4","SYSLOG_IDENTIFIER":"sshd","MESSAGE":"Connection closed","_PID":"812"}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"WARN","msg":"Connection closed","service":"sshd","attrs":{"_PID":"812"}}`},
	{"Docker", `{"log":"hello\n","stream":"stderr","time":"2026-05-28T12:40:00.118Z"}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"hello\n","attrs":{"stream":"stderr"}}`},
	{"Fluent Bit", `{"date":1779972000.118,"log":"hello"}`,
		`{"time":"2026-05-28T12:40:00.118000000Z","level":"INFO","msg":"hello"}`},
	{"VictoriaLogs", `{"_time":"2026-05-28T12:40:00Z","_msg":"hello","_stream":"{}"}`,
		`{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":"hello","attrs":{"_stream":"{}"}}`},
	{"Google Cloud", `{"severity":"NOTICE","message":"hello","time":"2026-05-28T12:40:00Z","logging.googleapis.com/labels":{"a":"b"}}`,
		`{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO+2","msg":"hello","attrs":{"logging.googleapis.com/labels":{"a":"b"}}}`},
	{"AWS CloudTrail", `{"eventVersion":"1.08","eventTime":"2026-05-28T12:40:00Z","eventName":"GetObject"}`,
		`{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","attrs":{"eventVersion":"1.08","eventName":"GetObject"}}`},
}

func TestLibraries(t *testing.T) {
	for _, c := range libraries {
		b, err := normalizeBody(t, Limits{}, c.in)
		if got := strings.TrimSuffix(string(b.Lines), "\n"); err != nil || got != c.want {
			t.Errorf("%s:\n got %s\nwant %s\n%v", c.name, got, c.want, err)
		}
	}
}

// libraryForms are the ways in which an event is read: they must agree.
var libraryForms = map[string]func(b *Batch, in string) error{
	"Builder.Message": func(b *Batch, in string) error {
		build := New(Limits{}).Build(b, received)
		build.Begin()
		build.Message([]byte(in))
		build.End()
		build.Done()
		return nil
	},
	"Builder.Field": func(b *Batch, in string) error {
		build := New(Limits{}).Build(b, received)
		build.Begin()
		fields(build, []byte(in))
		build.End()
		build.Done()
		return nil
	},
}

// fields gives the members of an object to a Builder one by one, objects directly
// in it taken apart as receivers do.
func fields(b *Builder, object []byte) {
	for w := jsonwalk.Members(object, 0); w.Next(); {
		b.Field(bytes.Clone(object[w.Name.Start+1 : w.Name.End-1]))
		value := w.Value.Of(object)
		if value[0] != '{' {
			b.JSON(value)
			continue
		}
		b.BeginObject()
		for m := jsonwalk.Members(value, 0); m.Next(); {
			b.Name(bytes.Clone(value[m.Name.Start+1 : m.Name.End-1]))
			b.JSON(m.Value.Of(value))
		}
		b.EndObject()
	}
}

func TestLibrariesByOtherWays(t *testing.T) {
	for form, read := range libraryForms {
		for _, c := range libraries {
			b := new(Batch)
			err := read(b, c.in)
			checkBatch(t, b)
			if got := strings.TrimSuffix(string(b.Lines), "\n"); err != nil || got != c.want {
				t.Errorf("%s, %s:\n got %s\nwant %s\n%v", form, c.name, got, c.want, err)
			}
		}
	}
}
