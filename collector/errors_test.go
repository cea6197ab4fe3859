package collector

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/normalize"
)

// Texts as runtimes print them, escaped for JSON.
const (
	pyTrace   = `Traceback (most recent call last):\n  File \"/app/shop.py\", line 7, in pay\n    return 1 / 0\nZeroDivisionError: division by zero`
	javaTrace = `java.lang.ArithmeticException: / by zero\n\tat com.shop.Cart.pay(Cart.java:7)\n\tat java.base/java.lang.Thread.run(Thread.java:833)\n`
	netTrace  = `System.DivideByZeroException: Attempted to divide by zero.\n   at Shop.Cart.Pay(Int32 a) in /app/Cart.cs:line 7`
	nodeTrace = `ZeroDivisionError: division by zero\n    at pay (/app/shop.js:7:9)\n    at main (/app/shop.js:9:1)`
)

// errorForms are events with an error as libraries write them; NAME in one is replaced.
var errorForms = []struct{ name, to, text string }{
	// JSON lines, as files, HTTP and shippers have them
	{"python-json-logger", "json", `{"asctime":"2026-11-28 06:00:00,118","levelname":"ERROR","name":"shop","message":"NAME","exc_info":"` + pyTrace + `"}`},
	{"structlog", "json", `{"event":"NAME","level":"error","logger":"shop","timestamp":"2026-11-28T06:00:00.5Z","exception":"` + pyTrace + `"}`},
	{"structlog, dict_tracebacks", "json", `{"event":"NAME","level":"error","exception":[{"exc_type":"ZeroDivisionError","exc_value":"division by zero","exc_notes":[],"syntax_error":null,"is_cause":false,"frames":[{"filename":"/app/shop.py","lineno":7,"name":"pay"}],"is_group":false,"exceptions":[]}]}`},
	{"loguru", "json", `{"text":"2026-11-28 06:00:00.118 | ERROR    | shop:pay:7 - NAME\n` + pyTrace + `\n","record":{"elapsed":{"repr":"0:00:00.01","seconds":0.01},"exception":{"type":"ZeroDivisionError","value":"division by zero","traceback":true},"extra":{},"file":{"name":"shop.py","path":"/app/shop.py"},"function":"pay","level":{"icon":"❌","name":"ERROR","no":40},"line":7,"message":"NAME","module":"shop","name":"shop","process":{"id":7,"name":"MainProcess"},"thread":{"id":1,"name":"MainThread"},"time":{"repr":"2026-11-28 06:00:00.118000+00:00","timestamp":1795845600.118}}}`},
	{"logstash (Python)", "tcp", `{"@timestamp":"2026-11-28T06:00:00.118Z","@version":"1","message":"NAME","host":"web-1","path":"/app/shop.py","tags":[],"type":"logstash","level":"ERROR","logger_name":"shop","stack_trace":"` + pyTrace + `"}`},
	{"ECS, nested (Python)", "bulk", `{"@timestamp":"2026-11-28T06:00:00.118Z","log.level":"error","message":"NAME","ecs":{"version":"1.6.0"},"error":{"message":"division by zero","stack_trace":"` + pyTrace + `","type":"ZeroDivisionError"},"log":{"logger":"shop","origin":{"file":{"line":7}}}}`},
	{"ECS, flat (Java)", "bulk", `{"@timestamp":"2026-11-28T06:00:00.118Z","log.level":"ERROR","message":"NAME","ecs.version":"1.2.0","service.name":"shop","process.thread.name":"main","log.logger":"com.shop.Cart","error.type":"java.lang.ArithmeticException","error.message":"/ by zero","error.stack_trace":"` + javaTrace + `"}`},
	{"logstash-logback-encoder", "tcp", `{"@timestamp":"2026-11-28T06:00:00.118Z","@version":"1","message":"NAME","logger_name":"com.shop.Cart","thread_name":"main","level":"ERROR","level_value":40000,"stack_trace":"` + javaTrace + `"}`},
	{"logback, JsonEncoder", "json", `{"sequenceNumber":0,"timestamp":1795845600118,"nanoseconds":118000000,"level":"ERROR","threadName":"main","loggerName":"com.shop.Cart","mdc":{},"message":"NAME","throwable":{"className":"java.lang.ArithmeticException","message":"/ by zero","stepArray":[{"className":"com.shop.Cart","methodName":"pay","fileName":"Cart.java","lineNumber":7}]}}`},
	{"Log4j 2, JsonLayout", "json", `{"instant":{"epochSecond":1795845600,"nanoOfSecond":118000000},"thread":"main","level":"ERROR","loggerName":"com.shop.Cart","message":"NAME","thrown":{"commonElementCount":0,"localizedMessage":"/ by zero","message":"/ by zero","name":"java.lang.ArithmeticException","extendedStackTrace":[{"class":"com.shop.Cart","method":"pay","file":"Cart.java","line":7}]},"endOfBatch":false}`},
	{"Log4j 2, LogstashJsonEventLayoutV1", "json", `{"mdc":{},"exception":{"exception_class":"java.lang.ArithmeticException","exception_message":"/ by zero","stacktrace":"` + javaTrace + `"},"@version":1,"message":"NAME","thread_name":"main","@timestamp":"2026-11-28T06:00:00.118Z","level":"ERROR","logger_name":"com.shop.Cart"}`},
	{"pino", "json", `{"level":50,"time":1795845600118,"pid":7,"hostname":"web-1","err":{"type":"ZeroDivisionError","message":"division by zero","stack":"` + nodeTrace + `"},"msg":"NAME"}`},
	{"bunyan", "json", `{"name":"shop","hostname":"web-1","pid":7,"level":50,"err":{"message":"division by zero","name":"ZeroDivisionError","stack":"` + nodeTrace + `"},"msg":"NAME","time":"2026-11-28T06:00:00.118Z","v":0}`},
	{"winston, errors({stack: true})", "json", `{"level":"error","message":"NAME","stack":"` + nodeTrace + `","timestamp":"2026-11-28T06:00:00.118Z"}`},
	{"Monolog", "json", `{"message":"NAME","context":{"exception":{"class":"DivisionByZeroError","message":"division by zero","code":0,"file":"/app/shop.php:7","trace":["/app/main.php:9"]}},"level":400,"level_name":"ERROR","channel":"shop","datetime":"2026-11-28T06:00:00.118+00:00","extra":{}}`},
	{"NLog", "json", `{ "time": "2026-11-28 06:00:00.1180", "level": "ERROR", "logger": "Shop.Cart", "message": "NAME", "exception": "` + netTrace + `" }`},
	{"Serilog, compact", "json", `{"@t":"2026-11-28T06:00:00.1180000Z","@mt":"NAME","@l":"Error","@x":"` + netTrace + `","SourceContext":"Shop.Cart"}`},
	{"Serilog, JsonFormatter", "json", `{"Timestamp":"2026-11-28T06:00:00.1180000+00:00","Level":"Error","MessageTemplate":"NAME","Exception":"` + netTrace + `","Properties":{"SourceContext":"Shop.Cart"}}`},
	{"zap", "json", `{"level":"error","ts":1795845600.118,"logger":"shop","caller":"shop/cart.go:7","msg":"NAME","error":"division by zero","stacktrace":"main.pay\n\t/app/cart.go:7\nmain.main\n\t/app/main.go:9"}`},
	{"zerolog, pkgerrors", "json", `{"level":"error","stack":[{"func":"pay","line":"7","source":"cart.go"}],"error":"division by zero","time":1795845600,"message":"NAME"}`},
	{"slog of Go", "json", `{"time":"2026-11-28T06:00:00.118Z","level":"ERROR","msg":"NAME","err":"division by zero"}`},
	{"Rust, tracing", "json", `{"timestamp":"2026-11-28T06:00:00.118Z","level":"ERROR","fields":{"message":"NAME","error":"division by zero"},"target":"shop::cart"}`},
	{"Ruby, semantic_logger", "json", `{"host":"web-1","application":"shop","timestamp":"2026-11-28T06:00:00.118Z","level":"error","level_index":4,"pid":7,"thread":"main","name":"Cart","message":"NAME","exception":{"name":"ZeroDivisionError","message":"divided by 0","stack_trace":["cart.rb:7:in 'Cart#pay'"]}}`},
	{"AWS Lambda, Python", "json", `{"timestamp":"2026-11-28T06:00:00Z","level":"ERROR","message":"NAME","logger":"root","stackTrace":["  File \"/var/task/shop.py\", line 7, in pay\n    return 1 / 0\n"],"errorType":"ZeroDivisionError","errorMessage":"division by zero","requestId":"7"}`},
	{"Datadog", "datadog", `[{"message":"NAME","status":"error","service":"shop","hostname":"web-1","error":{"kind":"ZeroDivisionError","message":"division by zero","stack":"` + pyTrace + `"}}]`},
	// envelopes
	{"OpenTelemetry, Python", "otlp", `{"timeUnixNano":"1795845600118000000","severityNumber":17,"severityText":"ERROR","body":{"stringValue":"NAME"},"attributes":[{"key":"exception.type","value":{"stringValue":"ZeroDivisionError"}},{"key":"exception.message","value":{"stringValue":"division by zero"}},{"key":"exception.stacktrace","value":{"stringValue":"` + pyTrace + `"}},{"key":"code.function.name","value":{"stringValue":"pay"}}]}`},
	{"OpenTelemetry, no severity", "otlp", `{"body":{"stringValue":"NAME"},"attributes":[{"key":"exception.message","value":{"stringValue":"/ by zero"}},{"key":"exception.type","value":{"stringValue":"java.lang.ArithmeticException"}}]}`},
	{"Sentry, Python", "sentry", `{"level":"error","exception":{"values":[{"module":null,"type":"KeyError","value":"7"},{"module":null,"type":"ZeroDivisionError","value":"division by zero","stacktrace":{"frames":[{"filename":"shop.py","function":"pay","lineno":7,"in_app":true}]}}]},"logger":"shop","logentry":{"message":"NAME"},"timestamp":"2026-11-28T06:00:00.118Z"}`},
	{"loki4j", "loki", `{"level":"ERROR","message":"NAME","logger_name":"com.shop.Cart","thread_name":"main","stack_trace":"` + javaTrace + `"}`},
	{"python-logging-loki with JSON", "loki", `{"levelname":"ERROR","message":"NAME","exc_info":"` + pyTrace + `"}`},
	{"splunk-handler with JSON", "splunk", `{"levelname":"ERROR","message":"NAME","exc_info":"` + pyTrace + `"}`},
	{"syslog with JSON", "syslog", `{"level":"error","message":"NAME","err":{"type":"ZeroDivisionError","message":"division by zero","stack":"` + nodeTrace + `"}}`},
	{"graypy", "gelf", `{"version":"1.1","host":"web-1","short_message":"NAME","full_message":"` + pyTrace + `","timestamp":1795845600.118,"level":3,"_logger":"shop"}`},
	{"logback-gelf", "gelf", `{"version":"1.1","host":"web-1","short_message":"NAME","full_message":"NAME\n` + javaTrace + `","timestamp":1795845600.118,"level":3,"_logger_name":"com.shop.Cart","_thread_name":"main"}`},
	{"fluent-logger (Python)", "forward", `{"sys_host":"web-1","message":"NAME","level":"ERROR","stack_trace":"` + pyTrace + `"}`},
	{"logback-more-appenders over forward", "forward", `{"msg":"NAME","level":"ERROR","logger":"com.shop.Cart","thread":"main","throwable":"` + javaTrace + `"}`},
}

// TestErrorsOfLibraries sends them to the receivers that their clients use, and finds all by
// one query, each at ERROR, with a fingerprint, and with its message.
func TestErrorsOfLibraries(t *testing.T) {
	cfg := testConfig(t)
	cfg.ListenTCP, cfg.ListenForward, cfg.ListenSyslog, cfg.ListenGELF = "127.0.0.1:0", "tcp://127.0.0.1:0", "tcp://127.0.0.1:0", "tcp://127.0.0.1:0"
	r := run(t, cfg)
	stream := func(addr net.Addr, text string) {
		conn := dialListener(t, addr)
		io.WriteString(conn, text)
		conn.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, conn) // until the collector has read all
	}
	post := func(path, text string) {
		resp, err := http.Post(r.url+path, "application/json", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		if resp.Body.Close(); err != nil || resp.StatusCode/100 != 2 {
			t.Errorf("%s: %d %s, %v", path, resp.StatusCode, answer, err)
		}
	}
	for i, f := range errorForms {
		text := strings.ReplaceAll(f.text, "NAME", fmt.Sprintf("charge <%d>", i))
		switch f.to {
		case "json":
			post("/api/logs", text)
		case "bulk":
			post("/_bulk", "{\"create\":{}}\n"+text+"\n")
		case "datadog":
			post("/api/v2/logs", text)
		case "otlp":
			post("/v1/logs", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[`+text+`]}]}]}`)
		case "sentry":
			post("/api/7/store/", text)
		case "loki":
			post("/loki/api/v1/push", `{"streams":[{"stream":{"app":"shop"},"values":[["1795845600118000000",`+quoted(text)+`]]}]}`)
		case "splunk":
			post("/services/collector/event", `{"event":`+text+`}`)
		case "tcp":
			stream(r.TCPAddr(), text+"\n")
		case "syslog":
			message := "<12>1 2026-11-28T06:00:00.118Z web-1 shop 7 - - @cee: " + text
			stream(r.SyslogAddrs()[0], fmt.Sprintf("%d %s", len(message), message))
		case "gelf":
			stream(r.GELFAddrs()[0], text+"\x00")
		case "forward":
			var record any
			if err := json.Unmarshal([]byte(text), &record); err != nil {
				t.Fatal(err)
			}
			stream(r.ForwardAddrs()[0], "\x93\xa3app\xce\x6b\x0a\x46\xe0"+packedValue(record))
		default:
			t.Fatal(f.to)
		}
	}
	const query = `error.type in (ZeroDivisionError, java.lang.ArithmeticException, System.DivideByZeroException, DivisionByZeroError) or error.message="division by zero" or error="division by zero"`
	found := r.query(t, query)
	python := r.query(t, "error.type=ZeroDivisionError")
	for i, f := range errorForms {
		id := fmt.Sprintf("charge <%d>", i)
		line := lineWith(found, id)
		switch {
		case line == "":
			t.Errorf("%s is not found: %s", f.name, lineWith(r.query(t, ""), id))
		case !strings.Contains(line, `,"level":"ERROR","msg":"`+id+`"`) || !strings.Contains(line, `"`+normalize.FingerprintName+`":"1-`):
			t.Errorf("%s: %s", f.name, line)
		case strings.Contains(f.text, "ZeroDivisionError") != (lineWith(python, id) != ""):
			t.Errorf("%s by its type: %s", f.name, line)
		case strings.Contains(f.text, `at com.shop`) && !strings.Contains(line, `\tat com.shop.Cart.pay(Cart.java:7)\n`):
			t.Errorf("%s: the stack has lost lines: %s", f.name, line)
		}
	}
	if n := strings.Count(found, "\n"); n != len(errorForms) {
		t.Errorf("%d lines of %d", n, len(errorForms))
	}
}

func (r *running) query(t *testing.T, expression string) string {
	code, _, lines := r.do(t, "GET", "/api/query?q="+url.QueryEscape(expression), "")
	if code != 200 {
		t.Fatal(code, lines)
	}
	return lines
}

// lineWith is the first of lines that has a text.
func lineWith(lines, text string) string {
	for line := range strings.Lines(lines) {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// packedValue is a value of encoding/json as MessagePack.
func packedValue(v any) string {
	switch v := v.(type) {
	case string:
		return "\xda" + string([]byte{byte(len(v) >> 8), byte(len(v))}) + v
	case map[string]any:
		text := string([]byte{0x80 | byte(len(v))})
		for name, value := range v {
			text += packedValue(name) + packedValue(value)
		}
		return text
	}
	panic("no such value here")
}

// A query by the name that a sender has used tells under which one its value is stored.
func TestHintOfStoredName(t *testing.T) {
	cfg := testConfig(t)
	cfg.Normalize.Service = config.Words{"component"}
	r := run(t, cfg)
	if status, _, body := r.do(t, "POST", "/api/logs", `{"msg":"x","hostname":"web-1","component":"shop","err":{"name":"E"}}`); status != http.StatusOK {
		t.Fatal(status, body)
	}
	for name, stored := range map[string]string{"hostname": "host", "component": "service", "err": "error", "exc_type": "error.type", "message": "msg"} {
		_, h, _ := r.do(t, "GET", "/api/query?q="+name+"=x", "")
		if want := fmt.Sprintf("of the newest 1 lines none has the field `%s`; `%[1]s` is stored as `%s`", name, stored); h.Get("Rollway-Hint") != want {
			t.Errorf("%s: %q", name, h.Get("Rollway-Hint"))
		}
	}
}
