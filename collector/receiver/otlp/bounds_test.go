package otlp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/receiver"
)

// rawField is a field of any bytes.
func rawField(num protowire.Number, parts ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), slices.Concat(parts...))
}

// inRecord is a request of one LogRecord with these fields.
func inRecord(fields ...[]byte) string {
	return string(rawField(1, rawField(2, rawField(2, fields...))))
}

// A part of a request that is no message refuses all of it, however deep it is,
// also where its record is rejected already.
func TestPartsThatAreNoMessages(t *testing.T) {
	s := newServer(t, func(o *receiver.Options) { o.Limits.MaxEventBytes = 500 })
	bad, record := []byte("\xff"), rawField(2)
	good := rawField(1, []byte("a"))
	for name, body := range map[string]string{
		"ResourceLogs":                        string(rawField(1, bad)),
		"Resource":                            string(rawField(1, rawField(1, bad), rawField(2, record))),
		"KeyValue of a resource":              string(rawField(1, rawField(1, rawField(1, bad)), rawField(2, record))),
		"AnyValue of a resource":              string(rawField(1, rawField(1, rawField(1, good, rawField(2, bad))), rawField(2, record))),
		"ScopeLogs":                           string(rawField(1, rawField(2, record, bad))),
		"InstrumentationScope":                string(rawField(1, rawField(2, rawField(1, bad), record))),
		"KeyValue of a scope":                 string(rawField(1, rawField(2, rawField(1, rawField(3, bad)), record))),
		"AnyValue of a scope":                 string(rawField(1, rawField(2, rawField(1, rawField(3, good, rawField(2, bad))), record))),
		"LogRecord":                           inRecord(bad),
		"LogRecord that is too large":         inRecord(rawField(3, []byte(strings.Repeat("x", 600))), bad),
		"KeyValue of a record":                inRecord(rawField(6, bad)),
		"AnyValue of a record":                inRecord(rawField(6, good, rawField(2, bad))),
		"AnyValue of a body":                  inRecord(rawField(5, bad)),
		"ArrayValue":                          inRecord(rawField(5, rawField(5, bad))),
		"AnyValue in an array":                inRecord(rawField(5, rawField(5, rawField(1, bad)))),
		"KeyValueList":                        inRecord(rawField(5, rawField(6, bad))),
		"KeyValue in a list":                  inRecord(rawField(5, rawField(6, rawField(1, bad)))),
		"AnyValue in a list":                  inRecord(rawField(5, rawField(6, rawField(1, good, rawField(2, bad))))),
		"ExportLogsServiceRequest in its end": inRecord() + "\xff",
	} {
		code, _, answer := s.post(inProtobuf, body)
		if code != 400 || len(s.Lines) > 0 || !strings.Contains(string(answer), strings.Fields(name)[0]) {
			t.Errorf("%s: %d %q, %d lines", name, code, answer, len(s.Lines))
		}
	}
	for _, members := range []string{
		`"body":{"boolValue":"true"}`, `"body":{"boolValue":1}`, `"body":{"stringValue":true}`, `"body":{"doubleValue":"x"}`, `"body":{"doubleValue":true}`,
		`"body":{"intValue":true}`, `"body":{"bytesValue":7}`, `"body":[]`, `"traceId":7`, `"spanId":7`, `"attributes":{}`, `"attributes":[7]`, `"flags":4294967296`,
		`"droppedAttributesCount":-1`, `"droppedAttributesCount":4294967296`, `"severityNumber":"LOUD"`, `"severityNumber":"SEVERITY_NUMBER_"`,
		`"severityNumber":"SEVERITY_NUMBER_INFO5"`, `"severityNumber":"SEVERITY_NUMBER_INFO1"`, `"severityNumber":"SEVERITY_NUMBER_2"`, `"severityNumber":"INFO"`,
		`"severityNumber":2147483648`, `"timeUnixNano":"18446744073709551616"`,
		`"body":{"stringValue":"a","intValue":1}`, `"body":{"arrayValue":{},"kvlistValue":{}}`, `"attributes":[{"key":"a","value":{},"value":{}}]`,
	} {
		if code, _, answer := s.post(inJSON, oneRecord(members)); code != 400 || len(s.Lines) > 0 {
			t.Errorf("%s: %d %s, %q", members, code, answer, s.Lines)
		}
	}
}

// Members of a KeyValue may come in any order, and be left out. One that has to be
// passed over to be read again costs more: deep nesting of such is refused.
func TestValuesBeforeKeys(t *testing.T) {
	want := before + `"level":"INFO","attrs":{"a":1,"b":null,"":2,"c":{"d":3}}}`
	got, _ := decode(t, inJSON, oneRecord(`"attributes":[{"value":{"intValue":1},"key":"a"},{"key":"b"},{"value":{"intValue":2}},{"value":{"kvlistValue":{"values":[{"value":{"intValue":3},"key":"d"}]}},"key":"c"}]`))
	if len(got) != 1 || got[0] != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	const levels = 50
	nested := strings.Repeat(`{"value":{"kvlistValue":{"values":[`, levels) + `{"key":"` + strings.Repeat("x", 10_000) + `"}` + strings.Repeat(`]}},"key":"a"}`, levels)
	s := newServer(t, nil)
	if code, _, answer := s.post(inJSON, oneRecord(`"attributes":[`+nested+`]`)); code != 400 || !strings.Contains(string(answer), "before their keys") {
		t.Errorf("%d %s", code, answer)
	}
}

// Severities have numbers, and in JSON names.
func TestSeverities(t *testing.T) {
	for i, name := range []string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"} {
		for step, suffix := range []string{"", "2", "3", "4"} {
			byName, _ := decode(t, inJSON, oneRecord(`"severityNumber":"SEVERITY_NUMBER_`+name+suffix+`"`))
			byNumber, _ := decode(t, inJSON, oneRecord(fmt.Sprintf(`"severityNumber":%d`, 1+4*i+step)))
			if byName[0] != byNumber[0] || step == 0 && !strings.Contains(byName[0], `"level":"`+name+`"`) && name != "FATAL" {
				t.Errorf("%s%s: %s, %s", name, suffix, byName, byNumber)
			}
		}
	}
	if lines, _ := decode(t, inJSON, oneRecord(`"severityNumber":"SEVERITY_NUMBER_UNSPECIFIED"`)); lines[0] != before+`"level":"INFO"}` {
		t.Errorf("%s", lines)
	}
}

// Ids are bytes; some senders write text where they belong.
func TestIDs(t *testing.T) {
	for _, c := range []struct{ trace, span, want string }{
		{strings.Repeat("\x00", 16), strings.Repeat("\x00", 8), `}`},
		{strings.Repeat("a", 16), strings.Repeat("b", 8), `,"trace_id":"` + strings.Repeat("61", 16) + `","span_id":"` + strings.Repeat("62", 8) + `"}`},
		{"req-7", "~!", `,"trace_id":"req-7","span_id":"~!"}`},
		{"req 7", "\x7f", `,"trace_id":"7265712037","span_id":"7f"}`},
		{strings.Repeat("\x00", 8), "\x00", `,"trace_id":"0000000000000000","span_id":"00"}`},
		{"\x00" + strings.Repeat("a", 15), strings.Repeat("\x00", 7) + "b", `,"trace_id":"00` + strings.Repeat("61", 15) + `","span_id":"0000000000000062"}`},
	} {
		lines, _ := decode(t, inProtobuf, inRecord(rawField(9, []byte(c.trace)), rawField(10, []byte(c.span))))
		if lines[0] != before+`"level":"INFO"`+c.want {
			t.Errorf("%q, %q: %s", c.trace, c.span, lines[0])
		}
	}
}

// A second name of the service stays with the resource's others.
func TestTwoServices(t *testing.T) {
	service := func(name string) []byte {
		return rawField(1, rawField(1, []byte("service.name")), rawField(2, rawField(1, []byte(name))))
	}
	lines, _ := decode(t, inProtobuf, string(rawField(1, rawField(1, service("a"), service("b")), rawField(2, rawField(2)))))
	if lines[0] != before+`"level":"INFO","service":"a","attrs":{"resource":{"service.name":"b"}}}` {
		t.Errorf("%s", lines[0])
	}
}

// The text of partial_success says of the first records what was wrong with each,
// and how many there are more.
func TestManyRejections(t *testing.T) {
	s := newServer(t, func(o *receiver.Options) { o.Limits.MaxEventBytes = 500 })
	texts := []string{"good"}
	for range 60 {
		texts = append(texts, strings.Repeat("x", 600))
	}
	code, _, answer := s.post(inJSON, bodies(t, texts...)[inJSON])
	first := "event 1 is larger than 500 bytes as a canonical line; event 2 is larger than"
	listed := strings.Count(string(answer), "is larger")
	if code != 200 || len(s.Lines) != 1 || !strings.Contains(string(answer), first) || len(answer) > 1300 || listed < 10 ||
		!strings.HasSuffix(string(answer), fmt.Sprintf(`line; and %d more"}}`, 60-listed)) {
		t.Errorf("%d, %d listed: %s", code, listed, answer)
	}
}
