package loki

import (
	"errors"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/internal/jsonline"
)

// The context of a line that is rejected:
//
//	{"labels":{NAME:VALUE,…},"entry":{"ts":"RFC 3339","structuredMetadata":{NAME:VALUE,…}}}

// end ends the event of an entry; one that is rejected is kept with its labels,
// its time and its metadata.
func (r *reader) end(e *entry) {
	if r.b.End() {
		return
	}
	const heads = 100
	size := heads
	for _, list := range [][]pair{r.labels, r.metadata} {
		for _, p := range list {
			size += len(p.name) + len(p.value)
		}
	}
	r.b.Context(size, func(dst []byte) []byte {
		dst = appendPairs(append(dst, `{"labels":{`...), r.labels)
		dst = append(dst, `},"entry":{`...)
		if e.timed {
			dst = append(dst, `"ts":"`...)
			dst = jsonline.AppendUnix(dst, e.sec, int(e.nsec))
			dst = append(dst, `",`...)
		}
		dst = appendPairs(append(dst, `"structuredMetadata":{`...), r.metadata)
		return append(dst, "}}}"...)
	})
}

func appendPairs(dst []byte, list []pair) []byte {
	for i, p := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonline.AppendStringBytes(dst, p.name)
		dst = append(dst, ':')
		dst = jsonline.AppendStringBytes(dst, p.value)
	}
	return dst
}

// Reread implements receiver.Rereader.
func (push) Reread(q *receiver.Request, context []byte) error {
	r := readers.Get()
	defer r.release()
	r.begin(q)
	defer r.b.Done()
	r.Begin(context, "context of a line")
	e := entry{line: q.Body}
	if err := r.Finish(r.jsonContext(&e)); err != nil {
		return err
	}
	r.entry(&e)
	return nil
}

// jsonContext reads the context of a line.
func (r *reader) jsonContext(e *entry) (end int, err error) {
	return r.Members(r.Start(), "a context", func(name []byte, at int) (int, error) {
		switch string(name) {
		case "labels":
			return r.jsonPairs(&r.labels, at, "labels")
		case "entry":
			return r.jsonMembers(e, at)
		}
		return 0, r.Invalid(at, errors.New("this is not as it was kept"))
	})
}
