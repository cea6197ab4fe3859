package loki

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
)

// transcoder turns a push in JSON into the protocol buffers that it stands for,
// so that both are read by the same code:
//
//	{"streams":[{"stream":{NAME:VALUE,…},"values":[["NANOSECONDS","LINE",{NAME:VALUE,…}],…]}]}
//
// and, as Loki took it at first,
//
//	{"streams":[{"labels":"{NAME=\"VALUE\"}","entries":[{"ts":"RFC 3339","line":"LINE"}]}]}
type transcoder struct{ wire.Transcoder }

// transcode returns q.Body as protocol buffers, valid until the reader is
// released.
func (t *transcoder) transcode(q *receiver.Request) ([]byte, error) {
	if err := q.Reserve(3 * int64(len(q.Body))); err != nil {
		return nil, err
	}
	t.Reset(q.Body)
	return t.Finish("push request", t.object("a push request", t.request))
}

// object reads an object and has member read the value of each of its names;
// the name is valid until it reads. Values that are null are left out.
func (t *transcoder) object(what string, member func(name []byte) error) error {
	if err := t.begin(jsontext.KindBeginObject, what, "an object"); err != nil {
		return err
	}
	for t.JSON.PeekKind() != jsontext.KindEndObject {
		v, err := t.JSON.ReadValue()
		if err != nil {
			return err
		}
		name := t.Unquoted(v)
		if t.JSON.PeekKind() == jsontext.KindNull {
			err = t.JSON.SkipValue()
		} else {
			err = member(name)
		}
		if err != nil {
			return err
		}
	}
	_, err := t.JSON.ReadToken()
	return err
}

// array reads an array and has element read each of its values.
func (t *transcoder) array(what string, element func() error) error {
	if err := t.begin(jsontext.KindBeginArray, what, "an array"); err != nil {
		return err
	}
	for t.JSON.PeekKind() != jsontext.KindEndArray {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := t.JSON.ReadToken()
	return err
}

func (t *transcoder) begin(kind jsontext.Kind, what, is string) error {
	if k := t.JSON.PeekKind(); k != kind && k != jsontext.KindInvalid {
		return fmt.Errorf("%s is %s, but this is %s", what, is, k)
	}
	_, err := t.JSON.ReadToken()
	return err
}

func (t *transcoder) request(name []byte) error {
	if string(name) != "streams" {
		return t.JSON.SkipValue()
	}
	return t.array("streams", func() error {
		start := t.Open(1)
		if err := t.object("a stream", t.stream); err != nil {
			return err
		}
		t.Shut(start)
		return nil
	})
}

func (t *transcoder) stream(name []byte) error {
	switch string(name) {
	case "stream":
		return t.pairs("stream", fieldLabel)
	case "values":
		return t.array("values", t.value)
	case "labels":
		v, err := t.string("labels")
		if err != nil {
			return err
		}
		t.Append(1, v)
		return nil
	case "entries":
		return t.array("entries", func() error {
			start := t.Open(2)
			if err := t.object("an entry", t.entry); err != nil {
				return err
			}
			t.Shut(start)
			return nil
		})
	}
	return t.JSON.SkipValue()
}

// value reads ["NANOSECONDS", "LINE", {…}].
func (t *transcoder) value() error {
	start, i := t.Open(2), 0
	err := t.array("a value", func() error {
		i++
		switch i {
		case 1:
			return t.nanoseconds()
		case 2:
			v, err := t.string("a line")
			if err != nil {
				return err
			}
			t.Append(2, v)
			return nil
		case 3:
			return t.pairs("structured metadata", 3)
		}
		return errors.New("a value has three elements at most: a time, a line and structured metadata")
	})
	if err == nil && i < 2 {
		err = errors.New("a value has two elements at least: a time and a line")
	}
	t.Shut(start)
	return err
}

// entry reads a member of {"ts":…,"line":…,"structuredMetadata":{…}}.
func (t *transcoder) entry(name []byte) error {
	switch string(name) {
	case "ts", "timestamp":
		v, err := t.string("ts")
		if err != nil {
			return err
		}
		at, err := time.Parse(time.RFC3339Nano, string(v))
		if err != nil {
			return fmt.Errorf("ts %.50q is not a time as in RFC 3339", v)
		}
		t.timestamp(at.Unix(), int64(at.Nanosecond()))
		return nil
	case "line":
		v, err := t.string("line")
		if err != nil {
			return err
		}
		t.Append(2, v)
		return nil
	case "structuredMetadata":
		return t.pairs("structuredMetadata", 3)
	}
	return t.JSON.SkipValue()
}

// nanoseconds reads a time: a number, or one as a string, since 1970.
func (t *transcoder) nanoseconds() error {
	kind := t.JSON.PeekKind()
	v, err := t.JSON.ReadValue()
	if err != nil {
		return err
	}
	text := v
	if kind == jsontext.KindString {
		text = t.Unquoted(v)
	}
	ns, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return fmt.Errorf("time %.50q is not a number of nanoseconds since 1970", v)
	}
	sec, rest := ns/1e9, ns%1e9
	if rest < 0 {
		sec, rest = sec-1, rest+1e9
	}
	t.timestamp(sec, rest)
	return nil
}

func (t *transcoder) timestamp(sec, nsec int64) {
	start := t.Open(1)
	t.Out = protowire.AppendTag(t.Out, 1, protowire.VarintType)
	t.Out = protowire.AppendVarint(t.Out, uint64(sec))
	t.Out = protowire.AppendTag(t.Out, 2, protowire.VarintType)
	t.Out = protowire.AppendVarint(t.Out, uint64(nsec))
	t.Shut(start)
}

// pairs reads an object of strings as fields of pairs. Other scalars are taken
// as they stand there.
func (t *transcoder) pairs(what string, num protowire.Number) error {
	return t.object(what, func(name []byte) error {
		start := t.Open(num)
		t.Append(1, name)
		v, err := t.JSON.ReadValue()
		if err != nil {
			return err
		}
		text := []byte(v)
		if v.Kind() == jsontext.KindString {
			text = t.Unquoted(v)
		}
		t.Append(2, text)
		t.Shut(start)
		return nil
	})
}

func (t *transcoder) string(what string) ([]byte, error) {
	v, err := t.JSON.ReadValue()
	if err != nil {
		return nil, err
	}
	if v.Kind() != jsontext.KindString {
		return nil, fmt.Errorf("%s is a string, but this is %.50q", what, v)
	}
	return t.Unquoted(v), nil
}
