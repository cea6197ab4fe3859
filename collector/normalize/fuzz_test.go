package normalize

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// seeds are bodies of every form and with every kind of fault.
var seeds = []string{
	article, "[" + article + "," + article + "]", articleLine + "\n" + article,
	"\xef\xbb\xbf{\"a\":1}\r\n\r\n[{\"b\":[ 1, {\"c\" : null} ]}]\nbad\n{\"d\":2}{\"e\":3}",
	"{\n  \"msg\": 1,\n  \"level\": \"warn+1\"\n}\n{\n\"ts\": 1779972000123.5\n}",
	`[1,"x",null,[{}],{"a":1,"a":2,"\u0061":3,"a_2":4}]`,
	"{\"a\":\"\xff\"}\n{\"a\":\"\\ud800\"}\n{\"\\ud800\":1,\"\\ud801\":2}",
	`{"metadata":{"a":{"b":1,"b":2}},"fields":[],"attrs":{"attrs":{"time":1}},"error":{"x":[ ]}}`,
	`{"time":"2026-05-28 12:40:00,123 +0200","severity":35,"log":true,"source":{"f" :1}}`,
	"{\"a\":\n{\"a\":1}\n", `{"a":1,}`, "[{}", "", "  ", "hello",
	`{"@timestamp":-1e-3,"lvl":"crit","service.name":"s","app":"t","trace.id":"x","traceId":"y"}`,
	`{"error":"a\nb","err":{"name":"T","cause":{"type":"U","cause":[{"msg":"m"}]}},"host":{"name":"h","ip":[1]},"exception.type":"V"}`,
	`{"record":{"level":{"name":"warn"},"exception":{"type":"T","value":5},"x":{"y":1}},"stack_trace":"E: m\n\tat a.B.c(B.java:1)","exception":[{"exc_type":"T"},{"a":1}]}`,
	`{"trace_id":"AQIDBAUGBwgJCgsMDQ4P\/w==","spanId":"AQIDBAUGB\u0077g=","traceId":"0102030405060708090A0B0C0D0E0FFF"}`,
}

func FuzzBody(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	small := Limits{MaxEventBytes: 300, MaxDepth: 6, MaxFields: 8, MaxKeyBytes: 20, MaxValueBytes: 100, MaxEvents: 5, MaxRejections: 3}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, limits := range []Limits{{}, small} {
			n, b := New(limits), new(Batch)
			before := bytes.Clone(body)
			err := n.Body(b, body, received)
			if !bytes.Equal(body, before) {
				t.Fatal("the body was written to")
			}
			checkBatch(t, b)
			if err == ErrEmpty {
				if len(bytes.TrimSpace(bytes.TrimPrefix(body, ByteOrderMark))) != 0 || b.Events() != 0 {
					t.Fatalf("%q is called empty, %d events", body, b.Events())
				}
				continue
			}
			if want, counted := countEvents(body); counted && want != b.Events() {
				t.Fatalf("%q has %d events, %d accepted + %d rejected", body, want, b.Records, b.RejectedTotal)
			}
			// A line normalizes to itself.
			again := new(Batch)
			if err := n.Body(again, b.Lines, received.Add(1)); err != nil && err != ErrEmpty {
				t.Fatalf("again: %v\n%s", err, b.Lines)
			}
			if limits.MaxEvents == 0 && (again.RejectedTotal != 0 || !bytes.Equal(again.Lines, b.Lines)) {
				t.Fatalf("once  %sagain %s%+v", b.Lines, again.Lines, again.Rejected)
			}
			// And the same Normalizer still does the same.
			twice := new(Batch)
			n.Body(twice, body, received)
			if !reflect.DeepEqual(b, twice) {
				t.Fatalf("first %+v\nthen  %+v", b, twice)
			}
		}
	})
}

// countEvents counts with encoding/json, if the body is JSON values in a row.
func countEvents(body []byte) (count int, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(body, ByteOrderMark)))
	for {
		var v json.RawMessage
		if err := dec.Decode(&v); err == io.EOF {
			break
		} else if err != nil {
			return 0, false
		}
		if v[0] != '[' {
			count++
			continue
		}
		var elements []json.RawMessage
		if json.Unmarshal(v, &elements) != nil {
			return 0, false
		}
		count += len(elements)
	}
	// Line by line a value that spans lines counts otherwise.
	return count, bytes.Count(bytes.TrimSpace(body), []byte("\n")) == 0
}

// FuzzValues checks every value of one event against encoding/json: each is
// found again, equal, in its slot or under its name in attrs.
func FuzzValues(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, event []byte) {
		if len(event) == 0 || event[0] != '{' || !json.Valid(event) || !utf8.Valid(event) {
			return
		}
		b := new(Batch)
		if err := New(Limits{}).Body(b, event, received); err != nil || b.Events() != 1 {
			t.Fatalf("%q: %v, %d events", event, err, b.Events())
		}
		if b.Records == 0 {
			return
		}
		var got map[string]json.RawMessage
		var attrs map[string]json.RawMessage
		if err := json.Unmarshal(b.Lines, &got); err != nil {
			t.Fatal(err)
		}
		if got["attrs"] != nil {
			if err := json.Unmarshal(got["attrs"], &attrs); err != nil {
				t.Fatal(err)
			}
		}
		// Values in a multiset of what came out.
		out := map[string]int{}
		for name, v := range got {
			if name != "attrs" {
				out[plainText(v)]++
			}
		}
		for _, v := range attrs {
			out[plainText(v)]++
		}
		leaves := map[string]bool{}
		eachScalar(b.Lines, func(part string) { leaves[part] = true })
		merged := map[string]bool{"metadata": true, "attributes": true, "fields": true, "context": true, "attrs": true}
		var members func(raw []byte, top bool)
		members = func(raw []byte, top bool) {
			dec := json.NewDecoder(bytes.NewReader(raw))
			dec.Token()
			for dec.More() {
				name, _ := dec.Token()
				var v json.RawMessage
				if err := dec.Decode(&v); err != nil {
					t.Fatal(err)
				}
				switch {
				case top && merged[name.(string)] && v[0] == '{':
					members(v, false)
				default:
					text := plainText(v)
					if out[text] == 0 && top {
						text = idInHex(name.(string), v)
					}
					if out[text] == 0 {
						// Of an error, or an object that was taken apart, each part is.
						eachScalar(v, func(part string) {
							if !leaves[part] && !rewritten[name.(string)] { // TestParseTime and TestParseLevel compare those
								t.Fatalf("%q: %s of %s is not in %s", event, part, name, b.Lines)
							}
						})
					} else {
						out[text]--
					}
				}
			}
		}
		members(event, true)
	})
}

// rewritten are the names of times and levels, and of objects in which they or ids may be;
// idSizes has the bytes of ids.
var rewritten, idSizes = func() (map[string]bool, map[string]int) {
	rewritten, sizes := map[string]bool{}, map[string]int{}
	for _, r := range names {
		for _, name := range strings.Fields(r.names) {
			size := map[string]int{"trace_id": 16, "span_id": 8}[r.to]
			if object, _, inside := strings.Cut(name, "."); inside && size > 0 {
				rewritten[object] = true
			}
			switch {
			case size > 0:
				sizes[name] = size
			case r.to == "time" || r.to == "level":
				object, _, _ := strings.Cut(name, ".")
				rewritten[name], rewritten[object] = true, true
			}
		}
	}
	return rewritten, sizes
}()

// eachScalar calls yield for each text, number and literal in v, as plainText has them.
func eachScalar(v []byte, yield func(string)) {
	dec := json.NewDecoder(bytes.NewReader(v))
	var value json.RawMessage
	if dec.Decode(&value) != nil {
		return
	}
	if value[0] != '{' && value[0] != '[' {
		yield(plainText(value))
		return
	}
	inner := json.NewDecoder(bytes.NewReader(value))
	inner.Token()
	for inner.More() {
		if value[0] == '{' {
			inner.Token()
		}
		var part json.RawMessage
		if inner.Decode(&part) != nil {
			return
		}
		eachScalar(part, yield)
	}
}

// idInHex is v as plainText is where the slot of name has v in another form, or
// "!".
func idInHex(name string, v []byte) string {
	size := idSizes[name]
	var text string
	if json.Unmarshal(v, &text) != nil || size == 0 {
		return "!"
	}
	if id, err := hex.DecodeString(text); err == nil && len(id) == size {
		return plainText([]byte(`"` + hex.EncodeToString(id) + `"`))
	}
	id, err := base64.StdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/").Replace(text))
	if err != nil || len(id) != size {
		return "!"
	}
	return plainText([]byte(`"` + hex.EncodeToString(id) + `"`))
}

// plainText is v without white space, without the quotes of a string whose
// text is a number or a boolean, as such a message gets them.
func plainText(v []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return "!"
	}
	s := b.String()
	if strings.HasPrefix(s, `"`) {
		inner := s[1 : len(s)-1]
		if json.Valid([]byte(inner)) && !strings.HasPrefix(inner, `"`) {
			return inner
		}
	}
	return s
}
