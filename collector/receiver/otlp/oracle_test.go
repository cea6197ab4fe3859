package otlp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

var received = time.Unix(1_780_000_000, 5).UTC()

// decode has a body decoded and returns its lines.
func decode(t testing.TB, contentType, body string) ([]string, *normalize.Batch) {
	t.Helper()
	return decodetest.Lines(t, Protocol, contentType, body, received)
}

// TestAgainstPdata makes logs at random, has the OpenTelemetry Collector's own
// library write them, and compares with an oracle that walks its objects.
func TestAgainstPdata(t *testing.T) {
	for seed := range uint64(400) {
		logs := randomLogs(rand.New(rand.NewPCG(seed, 7)))
		var want []map[string]any
		for _, rl := range logs.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					want = append(want, oracle(rl, sl, lr))
				}
			}
		}
		asProto, err := (&plog.ProtoMarshaler{}).MarshalLogs(logs)
		if err != nil {
			t.Fatal(err)
		}
		asJSON, err := (&plog.JSONMarshaler{}).MarshalLogs(logs)
		if err != nil {
			t.Fatal(err)
		}
		fromProto, b := decode(t, inProtobuf, string(asProto))
		fromJSON, _ := decode(t, inJSON, string(asJSON))
		if !reflect.DeepEqual(fromProto, fromJSON) {
			t.Fatalf("seed %d:\nprotobuf %q\nJSON     %q\nof %s", seed, fromProto, fromJSON, asJSON)
		}
		if b.Records != len(want) || b.RejectedTotal != 0 {
			t.Fatalf("seed %d: %d lines, %+v, want %d", seed, b.Records, b.Rejected, len(want))
		}
		for i, line := range fromProto[:len(want)] {
			var got map[string]any
			d := json.NewDecoder(strings.NewReader(line))
			d.UseNumber()
			if err := d.Decode(&got); err != nil {
				t.Fatalf("seed %d: %q: %v", seed, line, err)
			}
			if !reflect.DeepEqual(got, want[i]) {
				t.Fatalf("seed %d, record %d:\ngot  %v\nwant %v\nof %s", seed, i, got, want[i], asJSON)
			}
		}
	}
}

// oracle is the line of a record, as the package comment has it.
func oracle(rl plog.ResourceLogs, sl plog.ScopeLogs, lr plog.LogRecord) map[string]any {
	line, attrs := map[string]any{}, map[string]any{}
	put := func(name string, v any) {
		if v != "" && v != uint32(0) {
			attrs[name] = plain(v)
		}
	}
	for k, v := range lr.Attributes().All() {
		attrs[k] = valueOf(v)
	}
	at := lr.Timestamp()
	if at == 0 {
		at = lr.ObservedTimestamp()
	}
	const layout = "2006-01-02T15:04:05.000000000Z"
	line["time"] = received.Format(layout)
	if at != 0 {
		line["time"] = at.AsTime().Format(layout)
	}
	if o := lr.ObservedTimestamp(); o != 0 && o != at {
		put("observed_time", o.AsTime().Format(layout))
	}
	// The generator's texts are WARN, which is a level, and words.
	level := lr.SeverityText()
	if n := lr.SeverityNumber(); n > 0 {
		level = bySeverity[n-1]
	}
	if lr.SeverityText() != level || level != "WARN" {
		put("severity_text", lr.SeverityText())
	}
	line["level"] = "INFO"
	if lr.SeverityNumber() > 0 || level == "WARN" {
		line["level"] = level
	}
	switch body := lr.Body(); body.Type() {
	case pcommon.ValueTypeSlice:
		attrs["body"] = valueOf(body)
	case pcommon.ValueTypeMap: // of names that are no slots
		for k, v := range body.Map().All() {
			attrs[k] = valueOf(v)
		}
	case pcommon.ValueTypeEmpty:
	case pcommon.ValueTypeStr:
		line["msg"] = body.Str()
	default:
		line["msg"] = fmt.Sprint(valueOf(body))
	}
	if id := lr.TraceID(); !id.IsEmpty() {
		line["trace_id"] = id.String()
	}
	if id := lr.SpanID(); !id.IsEmpty() {
		line["span_id"] = id.String()
	}
	put("event_name", lr.EventName())
	put("flags", uint32(lr.Flags()))
	put("dropped_attributes_count", lr.DroppedAttributesCount())
	if name := sl.Scope().Name(); name != "" {
		line["logger"] = name
	}
	put("scope.version", sl.Scope().Version())
	put("scope.schema_url", sl.SchemaUrl())
	put("scope.dropped_attributes_count", sl.Scope().DroppedAttributesCount())
	if a := sl.Scope().Attributes(); a.Len() > 0 {
		attrs["scope.attributes"] = mapOf(a)
	}
	put("resource.schema_url", rl.SchemaUrl())
	put("resource.dropped_attributes_count", rl.Resource().DroppedAttributesCount())
	res := mapOf(rl.Resource().Attributes())
	if s, is := res["service.name"].(string); is && s != "" {
		if v, _ := rl.Resource().Attributes().Get("service.name"); v.Type() == pcommon.ValueTypeStr {
			line["service"] = s
			delete(res, "service.name")
		}
	}
	if len(res) > 0 {
		attrs["resource"] = res
	}
	if len(attrs) > 0 {
		line["attrs"] = attrs
	}
	return line
}

// bySeverity are levels by severity number - 1.
var bySeverity = strings.Fields("TRACE TRACE+1 TRACE+2 TRACE+3 DEBUG DEBUG+1 DEBUG+2 DEBUG+3 INFO INFO+1 INFO+2 INFO+3 " +
	"WARN WARN+1 WARN+2 WARN+3 ERROR ERROR+1 PANIC PANIC+1 FATAL FATAL+1 FATAL+2 FATAL+3")

func plain(v any) any {
	if n, is := v.(uint32); is {
		return json.Number(fmt.Sprint(n))
	}
	return v
}

func mapOf(m pcommon.Map) map[string]any {
	out := map[string]any{}
	for k, v := range m.All() {
		out[k] = valueOf(v)
	}
	return out
}

// valueOf is a value as JSON is read with UseNumber.
func valueOf(v pcommon.Value) any {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return v.Str()
	case pcommon.ValueTypeBool:
		return v.Bool()
	case pcommon.ValueTypeInt:
		return json.Number(fmt.Sprint(v.Int()))
	case pcommon.ValueTypeDouble:
		switch d := v.Double(); {
		case math.IsNaN(d):
			return "NaN"
		case math.IsInf(d, 1):
			return "+Inf"
		case math.IsInf(d, -1):
			return "-Inf"
		default:
			text, _ := json.Marshal(d)
			return json.Number(text)
		}
	case pcommon.ValueTypeBytes:
		return base64.StdEncoding.EncodeToString(v.Bytes().AsRaw())
	case pcommon.ValueTypeMap:
		return mapOf(v.Map())
	case pcommon.ValueTypeSlice:
		out := []any{}
		for _, e := range v.Slice().All() {
			out = append(out, valueOf(e))
		}
		return out
	}
	return nil
}

// random logs hold every field and every kind of value, and leave each out.
type random struct{ *rand.Rand }

func (r random) text() string {
	texts := []string{"", "", "a", "two words", "quote\" back\\slash", "line\nbreak\x00", "é \u2028 😀", strings.Repeat("long ", 100)}
	return texts[r.IntN(len(texts))]
}

func (r random) value(v pcommon.Value, depth int) {
	kinds := 8
	if depth > 3 {
		kinds = 6
	}
	switch r.IntN(kinds) {
	case 0:
	case 1:
		v.SetStr(r.text())
	case 2:
		v.SetBool(r.IntN(2) == 0)
	case 3:
		v.SetInt([]int64{0, 1, -1, math.MaxInt64, math.MinInt64, r.Int64()}[r.IntN(6)])
	case 4:
		v.SetDouble([]float64{0, 1.5, -1e-7, 1e21, math.NaN(), math.Inf(1), math.Inf(-1), r.Float64()}[r.IntN(8)])
	case 5:
		v.SetEmptyBytes().FromRaw([]byte(r.text()))
	case 6:
		r.fill(v.SetEmptyMap(), depth+1)
	case 7:
		s := v.SetEmptySlice()
		for range r.IntN(4) {
			r.value(s.AppendEmpty(), depth+1)
		}
	}
}

func (r random) fill(m pcommon.Map, depth int) {
	names := []string{"level", "msg", "service.name", "http.status", "é", "a b", "resource2", ""}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:r.IntN(5)] {
		r.value(m.PutEmpty(name), depth)
	}
}

func (r random) nanos() pcommon.Timestamp {
	at := pcommon.NewTimestampFromTime(received) // times far from it are marked
	return []pcommon.Timestamp{0, at, at - 1, at - pcommon.Timestamp(r.Uint64N(3600e9))}[r.IntN(4)]
}

func randomLogs(rnd *rand.Rand) plog.Logs {
	r := random{rnd}
	logs := plog.NewLogs()
	for range 1 + r.IntN(3) {
		rl := logs.ResourceLogs().AppendEmpty()
		rl.SetSchemaUrl(r.text())
		r.fill(rl.Resource().Attributes(), 0)
		if r.IntN(2) == 0 {
			rl.Resource().Attributes().PutStr("service.name", "shop")
		}
		rl.Resource().SetDroppedAttributesCount(uint32(r.IntN(2)))
		for range 1 + r.IntN(2) {
			sl := rl.ScopeLogs().AppendEmpty()
			sl.SetSchemaUrl(r.text())
			sl.Scope().SetName(r.text())
			sl.Scope().SetVersion(r.text())
			sl.Scope().SetDroppedAttributesCount(uint32(r.IntN(2)))
			r.fill(sl.Scope().Attributes(), 0)
			for range 1 + r.IntN(3) {
				lr := sl.LogRecords().AppendEmpty()
				lr.SetTimestamp(r.nanos())
				lr.SetObservedTimestamp(r.nanos())
				lr.SetSeverityNumber(plog.SeverityNumber(r.IntN(25)))
				lr.SetSeverityText([]string{"", "WARN", "loud"}[r.IntN(3)])
				if r.value(lr.Body(), 0); lr.Body().Type() == pcommon.ValueTypeMap {
					inBody := pcommon.NewMap()
					for k, v := range lr.Body().Map().All() {
						v.CopyTo(inBody.PutEmpty("body " + k))
					}
					inBody.MoveTo(lr.Body().Map())
				}
				r.fill(lr.Attributes(), 0)
				lr.SetDroppedAttributesCount(uint32(r.IntN(3)))
				lr.SetFlags(plog.LogRecordFlags(r.IntN(3)))
				lr.SetEventName(r.text())
				if r.IntN(2) == 0 {
					lr.SetTraceID(pcommon.TraceID{1, 2, 15: byte(r.IntN(256))})
					lr.SetSpanID(pcommon.SpanID{3, 7: 9})
				}
			}
		}
	}
	return logs
}
