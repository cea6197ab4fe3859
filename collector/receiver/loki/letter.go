package loki

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/internal/jsonline"
)

// The context of a line that is rejected:
//
//	{"labels":{NAME:VALUE,…},"entry":{"ts":"RFC 3339","structuredMetadata":{NAME:VALUE,…}}}

// end ends the event of an entry; one that is rejected is kept with its labels,
// its time and its metadata.
func (r *reader) end(stamp, msg []byte) error {
	if r.b.End() {
		return nil
	}
	size := len(msg)
	for _, p := range r.labels {
		size += len(p.name) + len(p.value)
	}
	var err error
	r.b.Context(size, func(dst []byte) []byte {
		dst, err = r.appendContext(dst, stamp, msg)
		return dst
	})
	return err
}

func (r *reader) appendContext(dst, stamp, msg []byte) ([]byte, error) {
	dst = append(dst, `{"labels":{`...)
	for i, p := range r.labels {
		dst = appendPair(dst, i == 0, p)
	}
	dst = append(dst, `},"entry":{`...)
	sec, nsec, timed, err := readStamp(stamp)
	if timed {
		dst = append(dst, `"ts":"`...)
		dst = jsonline.AppendUnix(dst, sec, int(nsec))
		dst = append(dst, `",`...)
	}
	dst = append(dst, `"structuredMetadata":{`...)
	first := true
	for f := wire.Over(msg); f.Next(); {
		if (f.Num == 3 || f.Num == 4) && f.Is(protowire.BytesType) {
			p, pairErr := readPair(f.Bytes)
			if err == nil {
				err = pairErr
			}
			dst = appendPair(dst, first, p)
			first = false
		}
	}
	return append(dst, "}}}"...), err
}

func appendPair(dst []byte, first bool, p pair) []byte {
	if !first {
		dst = append(dst, ',')
	}
	dst = jsonline.AppendStringBytes(dst, p.name)
	dst = append(dst, ':')
	return jsonline.AppendStringBytes(dst, p.value)
}

// Reread implements receiver.Rereader.
func (push) Reread(q *receiver.Request, context []byte) error {
	r := readers.Get()
	defer r.release()
	msg, err := r.transcodeContext(context, q.Body)
	if err != nil {
		return err
	}
	return r.read(q, msg)
}

// transcodeContext returns a request of one line and its context as protocol
// buffers, valid until the reader is released.
func (t *transcoder) transcodeContext(context, line []byte) ([]byte, error) {
	t.Reset(context)
	stream := t.Open(1)
	err := t.object("a context", func(name []byte) error {
		switch string(name) {
		case "labels":
			return t.pairs("labels", fieldLabel)
		case "entry":
			start := t.Open(2)
			t.Append(2, line)
			err := t.object("an entry", t.entry)
			t.Shut(start)
			return err
		}
		return t.JSON.SkipValue()
	})
	t.Shut(stream)
	if err != nil {
		return nil, fmt.Errorf("the context of a line is not as it was kept: %w", err)
	}
	return t.Out, nil
}
