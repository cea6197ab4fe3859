package otlp_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"math"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/gzip"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/decodetest"
	"github.com/rollway/rollway/collector/receiver/otlp"
)

// FuzzJSON has any body read as JSON and by the OpenTelemetry Collector's own
// library. Both take it or both refuse it, and the lines are those of what the
// library makes of it, written as protocol buffers and as JSON again; liberties
// lists where they are known to differ.
func FuzzJSON(f *testing.F) {
	addRecorded(f)
	for _, record := range []string{
		`"timeUnixNano":1779972000000000001,"observed_time_unix_nano":"1779972000000000002","severityNumber":"SEVERITY_NUMBER_WARN3"`,
		`"flags":"1","droppedAttributesCount":"3","severityNumber":9,"severityText":"Information","eventName":"e"`,
		`"traceId":"0102030405060708090A0B0C0D0E0F10","spanId":"0102030405060708"`,
		`"traceId":"AQIDBAUGBwgJCgsMDQ4PEA==","spanId":"x","severityNumber":"9"`,
		`"body":{"stringValue":"a\u0062\n\ud83d\ude00 \ud83d` + "\xff" + `"},"attributes":null,"x":[{"y":1e5}]`,
		`"body":{"kvlistValue":{"values":[{"key":"a","value":{"intValue":"-7"}},{"key":"b","value":{"bytesValue":"AQI="}},{"key":"c"}]}}`,
		`"attributes":[{"key":"d","value":{"doubleValue":0.30000000000000004}},{"key":"n","value":{"doubleValue":"NaN"}},{"key":"b","value":{"bool_value":true}}]`,
		`"body":{"arrayValue":{"values":[{"arrayValue":{"values":[{"arrayValue":{}}]}}]}},"attributes":[{"key":"b","value":{"bytesValue":"-_8"}},null]`,
		`"body":{"stringValue":null},"body":{"intValue":1.0},"":{"timeUnixNano":-1}`,
	} {
		f.Add([]byte(`{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"s"}}]},"scopeLogs":[{"scope":{"name":"n"},"logRecords":[{` + record + `}],"schemaUrl":"u"}]}]}`))
	}
	f.Add([]byte(`{"resource_logs":[{"deprecatedScopeLogs":[{"logRecords":[{}]}],"scope_logs":[{"log_records":[{"bodY":7}]}]}]}{}`))
	limits := append(decodetest.FuzzLimits(), normalize.Limits{MaxPast: -1, MaxFuture: -1})
	f.Fuzz(func(t *testing.T, body []byte) {
		lib := librarys(t, body)
		for _, l := range limits {
			got, err := decodeAs(t, "application/json", body, l)
			if !json.Valid(body) {
				if err == nil {
					t.Fatalf("%q is no JSON and became %q", body, got.Lines)
				}
				return
			}
			may := surveyed(t, body)
			if err != nil {
				if lib != nil && !may.refuse {
					t.Fatalf("%v for %q, which the library takes", err, body)
				}
				return
			}
			decodetest.CheckLines(t, got)
			if lib == nil {
				if !may.take && got.RejectedTotal == 0 { // what a rejected event holds is not read any more
					t.Fatalf("%q became %q, and the library refuses it", body, got.Lines)
				}
				return
			}
			for form, text := range lib {
				want, err := decodeAs(t, form, text, l)
				if err != nil {
					t.Fatalf("%v for %q, which the library made of %q", err, text, body)
				}
				if !may.differ && !same(got, want) {
					t.Fatalf("%q became\n%s%+v\nas %s of the library\n%s%+v", body, got.Lines, got.Rejected, form, want.Lines, want.Rejected)
				}
			}
		}
	})
}

// addRecorded adds what real clients sent, in JSON.
func addRecorded(f *testing.F) {
	files, err := filepath.Glob("testdata/*.request")
	if err != nil {
		f.Fatal(err)
	}
	added := 0
	for _, file := range files {
		for _, req := range decodetest.Requests(f, file) {
			kind, src := req.Header.Get("Content-Type"), io.Reader(req.Body)
			if kind == "application/grpc" {
				continue // the same messages in frames
			}
			switch req.Header.Get("Content-Encoding") {
			case "":
			case "gzip":
				if src, err = gzip.NewReader(src); err != nil {
					f.Fatal(err)
				}
			default:
				continue
			}
			body, err := io.ReadAll(src)
			if err != nil {
				f.Fatal(err)
			}
			if kind != "application/json" {
				logs, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(body)
				if err != nil {
					f.Fatal(err)
				}
				if body, err = (&plog.JSONMarshaler{}).MarshalLogs(logs); err != nil {
					f.Fatal(err)
				}
			}
			f.Add(body)
			added++
		}
	}
	if added == 0 {
		f.Fatal("no recorded requests")
	}
}

// librarys is what the library makes of a body, by Content-Type; nil if it refuses it.
func librarys(t *testing.T, body []byte) map[string][]byte {
	logs, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(body)
	if err != nil {
		return nil
	}
	p, err := (&plog.ProtoMarshaler{}).MarshalLogs(logs)
	if err != nil {
		t.Fatal(err)
	}
	j, err := (&plog.JSONMarshaler{}).MarshalLogs(logs)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"application/x-protobuf": p, "application/json": j}
}

func decodeAs(t *testing.T, form string, body []byte, limits normalize.Limits) (*normalize.Batch, error) {
	req := httptest.NewRequest("POST", "/v1/logs", nil)
	req.Header.Set("Content-Type", form)
	b := new(normalize.Batch)
	body = bytes.Clone(body)
	_, err := decodetest.Decode(otlp.Protocol, normalize.New(limits), b, req, body, nil)
	for i := range body {
		body[i] = 0xDB // nothing may point there now
	}
	return b, err
}

// same reports whether two batches hold the same lines and rejections. The library
// reads numbers of more than 15 digits with an error in the last.
func same(a, b *normalize.Batch) bool {
	for _, reason := range normalize.Reasons() {
		if a.RejectedFor(reason) != b.RejectedFor(reason) {
			return false
		}
	}
	x, y := tokens(a.Lines), tokens(b.Lines)
	return slices.EqualFunc(x, y, func(a, b string) bool {
		if a == b {
			return true
		}
		v, err1 := strconv.ParseFloat(strings.Trim(a, `"`), 64)
		w, err2 := strconv.ParseFloat(strings.Trim(b, `"`), 64)
		return err1 == nil && err2 == nil && strings.ContainsAny(a, ".e") && math.Abs(v-w) <= 1e-15*math.Abs(v)
	})
}

// tokens are those of lines of JSON.
func tokens(lines []byte) (out []string) {
	dec := jsontext.NewDecoder(bytes.NewReader(lines), jsontext.AllowDuplicateNames(true))
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return append(out, err.Error())
		}
		if tok.Kind() == jsontext.KindString {
			out = append(out, strconv.Quote(tok.String()))
			continue
		}
		out = append(out, tok.String())
	}
}

// liberties are the ways in which a body may be read otherwise than the library
// reads it.
type liberties struct {
	take   bool // though the library refuses it
	refuse bool // though the library takes it
	differ bool // in the lines
}

// surveyed finds what is known to differ, wherever in the body it stands.
func surveyed(t *testing.T, body []byte) (may liberties) {
	if _, err := jsontext.AppendFormat(nil, body, jsontext.AllowDuplicateNames(true)); err != nil {
		may.differ = true // a lone surrogate: the library takes a pair after it apart
	}
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var walk func(name string)
	walk = func(name string) {
		switch kind := dec.PeekKind(); kind {
		case jsontext.KindBeginObject:
			dec.ReadToken()
			seen := map[string]bool{}
			values := 0
			for dec.PeekKind() != jsontext.KindEndObject {
				tok, err := dec.ReadToken()
				if err != nil {
					t.Fatal(err)
				}
				member := strings.ToLower(strings.ReplaceAll(tok.String(), "_", ""))
				switch member {
				case "":
					may = liberties{true, true, true} // which ends an object for the library
				case "stringvaluestrindex", "keystrindex", "entityrefs", "deprecatedscopelogs":
					may.take, may.differ = true, true // which only the library knows
				}
				if seen[member] {
					may = liberties{true, true, true} // the library merges some that come twice; the first is not read, or the second refused
				}
				seen[member] = true
				if slices.Contains(anyValues, member) {
					if values++; values > 1 {
						may.refuse, may.differ = true, true // the last one counts for the library
					}
				}
				walk(member)
			}
			dec.ReadToken()
		case jsontext.KindBeginArray:
			dec.ReadToken()
			for dec.PeekKind() != jsontext.KindEndArray {
				walk("")
			}
			dec.ReadToken()
		default:
			v, err := dec.ReadValue()
			if err != nil {
				t.Fatal(err)
			}
			may.scalar(name, kind, v)
		}
	}
	walk("")
	return may
}

// anyValues are the members of an AnyValue; it may have one.
var anyValues = []string{"stringvalue", "boolvalue", "intvalue", "doublevalue", "arrayvalue", "kvlistvalue", "bytesvalue"}

// scalar judges a value that is not an object or an array, of a member whose name
// is in lower case and has no underscores; an element of an array has none.
func (may *liberties) scalar(name string, kind jsontext.Kind, v []byte) {
	switch kind {
	case jsontext.KindNull:
		may.take = true // a null is an unset field, also a number; not so for the library
		switch name {
		case "":
			may.refuse = true // an element that is null, for the library an empty message
		case "stringvalue", "arrayvalue", "kvlistvalue":
			may.differ = true // for the library it is empty instead of null
		}
	case jsontext.KindNumber:
		if len(v) > 19 && !bytes.ContainsAny(v, ".eE") {
			may.refuse, may.differ = true, true // the library does not see each overflow
		}
		if _, err := strconv.ParseFloat(string(v), 64); err != nil {
			may.take = true // which the library wants to read where it only skips it
		}
	case jsontext.KindString:
		text := string(v[1 : len(v)-1])
		var err error
		size := 0
		switch name {
		case "traceid", "spanid":
			var id []byte
			id, err = hex.DecodeString(text)
			size = len(id)
			if name == "traceid" && size != 16 || name == "spanid" && size != 8 {
				may.take = may.take || size > 0 || err != nil // an id of another kind
			}
		case "bytesvalue":
			_, err = base64.StdEncoding.DecodeString(text)
		case "severitynumber":
			_, err = strconv.Atoi(text)
			may.take = may.take || err == nil // a number as a string
			return
		default:
			return
		}
		if err != nil || strings.Contains(text, `\`) {
			may.take, may.differ = true, true // another base64, or escapes, which the library takes for digits
		}
	}
}
