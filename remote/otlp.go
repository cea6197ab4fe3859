package remote

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/levels"
)

// OTLP says how lines become log records of OpenTelemetry. The zero value is the
// recommended setting.
//
// The service of a line is service.name of its resource, logger the name of its scope.
// time, level and msg, trace_id and span_id are those of the record; a text error is
// exception.message. Other members, and those of attrs, are attributes with their types.
// A line that is not a JSON object is the body of a record.
type OTLP struct {
	// Resource are attributes of the resource, such as deployment.environment.name. Its
	// service.name is for lines without a service. Default: service.name, the program's
	// file name.
	Resource map[string]string
}

func (o *OTLP) setDefaults() error {
	o.Resource = maps.Clone(o.Resource)
	if o.Resource == nil {
		o.Resource = make(map[string]string)
	}
	o.Resource["service.name"] = cmp.Or(o.Resource["service.name"], printable(programName(), 255))
	return nil
}

// defaultPath returns a function that gives a URL without a path that one.
func defaultPath(path string) func(*url.URL) error {
	return func(u *url.URL) error {
		if u.Path == "" || u.Path == "/" {
			u.Path = path
		}
		return nil
	}
}

// An otlpFormat is an ExportLogsServiceRequest in JSON.
type otlpFormat struct {
	resource string // JSON, the attributes besides service.name, each with a comma
	rec      record

	// JSON strings: the program's service, and those of the line that rec has, or nil
	program, service, scope, trace, span []byte
}

func newOTLPFormat(o OTLP) *otlpFormat {
	f := &otlpFormat{program: jsonline.AppendString(nil, o.Resource["service.name"])}
	for _, name := range slices.Sorted(maps.Keys(o.Resource)) {
		if key := jsonline.AppendString(nil, name); name != "service.name" {
			f.resource += string(appendKeyValue(nil, key[1:len(key)-1], jsonline.AppendString(nil, o.Resource[name]), 0))
		}
	}
	return f
}

func (f *otlpFormat) group([]byte) int { return 0 }

func (f *otlpFormat) appendBody(dst, _ []byte, lines [][]byte, at time.Time, _ func(int) string) []byte {
	dst = append(dst, `{"resourceLogs":[`...)
	for i, line := range lines {
		service, scope := f.service, f.scope
		f.read(line)
		switch {
		case i > 0 && bytes.Equal(service, f.service) && bytes.Equal(scope, f.scope):
			dst = append(dst, ',')
		case i > 0:
			dst = append(dst, `]}]},`...)
			fallthrough
		default:
			dst = append(append(dst, `{"resource":{"attributes":[`...), f.resource...)
			dst = append(append(dst, `{"key":"service.name","value":{"stringValue":`...), f.service...)
			dst = append(append(dst, `}}]},"scopeLogs":[{"scope":{"name":`...), f.scope...)
			dst = append(dst, `},"logRecords":[`...)
		}
		dst = f.appendRecord(dst, line, at)
	}
	return append(dst, `]}]}]}`...)
}

// read reads line. What has a place of its own in a request is not among f.rec.fields.
func (f *otlpFormat) read(line []byte) {
	f.rec.read(line, true)
	f.service, f.scope, f.trace, f.span = f.program, []byte(`""`), nil, nil
	all := f.rec.fields
	f.rec.fields = f.rec.fields[:0]
	for _, m := range all {
		key, v := string(m.key), m.value
		switch {
		case m.attr || v[0] != '"':
			f.rec.fields = append(f.rec.fields, m)
		case key == "service":
			f.service = v
		case key == "logger":
			f.scope = v
		case key == "trace_id" && isID(v, 32):
			f.trace = v
		case key == "span_id" && isID(v, 16):
			f.span = v
		case key == "error":
			f.rec.fields = append(f.rec.fields, field{key: []byte("exception.message"), value: v})
		default:
			f.rec.fields = append(f.rec.fields, m)
		}
	}
}

// isID reports whether v is a JSON string of that many hexadecimal digits.
func isID(v []byte, digits int) bool {
	return len(v) == digits+2 && len(bytes.Trim(v[1:digits+1], "0123456789abcdefABCDEF")) == 0
}

// appendRecord appends the LogRecord of line, which f.rec has.
func (f *otlpFormat) appendRecord(dst, line []byte, at time.Time) []byte {
	r, key := &f.rec, `{"timeUnixNano":"`
	if r.time.IsZero() {
		key = `{"observedTimeUnixNano":"`
	} else {
		at = r.time
	}
	dst = append(strconv.AppendInt(append(dst, key...), at.UnixNano(), 10), '"')
	if r.hasLevel {
		dst = append(dst, `,"severityNumber":`...)
		dst = strconv.AppendInt(dst, int64(min(max(r.level+9, 1), 24)), 10) // INFO is 9
		dst = append(levels.Append(append(dst, `,"severityText":"`...), r.level), '"')
	}
	switch {
	case !r.object:
		dst = append(jsonline.AppendStringBytes(append(dst, `,"body":{"stringValue":`...), line), '}')
	case r.msg != nil:
		dst = append(append(append(dst, `,"body":{"stringValue":"`...), r.msg...), `"}`...)
	}
	if f.trace != nil {
		dst = append(append(dst, `,"traceId":`...), f.trace...)
	}
	if f.span != nil {
		dst = append(append(dst, `,"spanId":`...), f.span...)
	}
	dst = append(dst, `,"attributes":[`...)
	for _, m := range r.fields {
		dst = appendKeyValue(dst, m.key, m.value, 0)
	}
	return append(bytes.TrimSuffix(dst, comma), `]}`...)
}

// appendKeyValue appends a KeyValue and a comma. key is a JSON string without its quotes.
func appendKeyValue(dst, key, value []byte, depth int) []byte {
	dst = append(append(append(dst, `{"key":"`...), key...), `","value":`...)
	return append(appendAnyValue(dst, value, depth), `},`...)
}

// maxAnyDepth is how deep values are nested at most; a deeper one is a text of JSON.
const maxAnyDepth = 20

// appendAnyValue appends the AnyValue of a JSON value.
func appendAnyValue(dst, value []byte, depth int) []byte {
	switch c := value[0]; {
	case c == '"':
		dst = append(append(dst, `{"stringValue":`...), value...)
	case c == 't' || c == 'f':
		dst = append(append(dst, `{"boolValue":`...), value...)
	case c == 'n':
		dst = append(dst, '{')
	case (c == '{' || c == '[') && depth >= maxAnyDepth:
		dst = jsonline.AppendStringBytes(append(dst, `{"stringValue":`...), value)
	case c == '{':
		dst = append(dst, `{"kvlistValue":{"values":[`...)
		for w := jsonwalk.Members(value, 0); w.Next(); {
			name := w.RawName()
			dst = appendKeyValue(dst, name[1:len(name)-1], w.RawValue(), depth+1)
		}
		dst = append(bytes.TrimSuffix(dst, comma), `]}`...)
	case c == '[':
		dst = append(dst, `{"arrayValue":{"values":[`...)
		for w := jsonwalk.Elements(value, 0); w.Next(); {
			dst = append(appendAnyValue(dst, w.RawValue(), depth+1), ',')
		}
		dst = append(bytes.TrimSuffix(dst, comma), `]}`...)
	case bytes.ContainsAny(value, ".eE"):
		dst = append(append(dst, `{"doubleValue":`...), value...)
	default:
		kind := `{"intValue":"`
		if _, err := strconv.ParseInt(string(value), 10, 64); errors.Is(err, strconv.ErrRange) {
			kind = `{"stringValue":"`
		}
		dst = append(append(append(dst, kind...), value...), '"')
	}
	return append(dst, '}')
}

var comma = []byte{','}

const otlpPath = "check the path of the URL: OTLP takes log records at /v1/logs"

// otlpAdvice is nothing where the peer gives its reason.
var otlpAdvice = map[int]string{
	http.StatusNotFound: otlpPath, http.StatusMethodNotAllowed: otlpPath, http.StatusUnsupportedMediaType: "the peer may take no JSON",
	http.StatusBadRequest: "", http.StatusUnprocessableEntity: "", http.StatusRequestEntityTooLarge: "",
}

func (f *otlpFormat) readAnswer(resp *http.Response, lines int, _ bool) (verdict, error) {
	if code := resp.StatusCode; code < 200 || code >= 300 {
		return readRefusal(resp, otlpAdvice)
	}
	t, err := readConfirmation(resp)
	return verdict{refused: t.refused(uint64(lines)), reason: t.reason()}, err
}
