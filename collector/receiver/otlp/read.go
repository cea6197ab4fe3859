package otlp

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
)

// reader turns an ExportLogsServiceRequest into events. Nothing in it outlives
// the request.
type reader struct {
	q      *receiver.Request
	b      *normalize.Builder
	spread int64 // bytes read for events, what they share counted for each
	json   bool  // the message is transcoded from JSON
	text   []byte

	transcoder
}

// keepScratch is the size from which memory does not go back to the pool.
const keepScratch = 1 << 20

func newReader() *reader {
	r := &reader{text: make([]byte, 0, 64)}
	r.transcoder.Init()
	return r
}

func (r *reader) release() {
	r.q, r.b, r.spread, r.json = nil, nil, 0, false
	r.transcoder.Release()
	readers.Put(r)
}

// Field numbers of LogRecord that this package gives to ids which are text, in
// what it transcodes from JSON.
const (
	fieldTraceText = 1001
	fieldSpanText  = 1002
)

// The parts of a request that are read once and needed for each record.
type (
	resource struct {
		msg       []byte // the message
		service   []byte // the value of service.name, if it is a string
		others    bool   // it has other attributes
		dropped   uint64
		schemaURL []byte
	}
	scope struct {
		msg        []byte
		name       []byte
		version    []byte
		attributes bool
		dropped    uint64
		schemaURL  []byte
	}
)

// read makes events of the records of msg.
//
//	ExportLogsServiceRequest { resource_logs 1 }
func (r *reader) read(q *receiver.Request, msg []byte, json bool) error {
	r.q, r.json = q, json
	if json {
		r.spread = 2 * int64(len(q.Body)) // what transcode took
	}
	r.b = q.Norm.Build(q.Batch, q.Received)
	defer r.b.Done()
	f := wire.Over(msg)
	for f.Next() {
		if f.Num == 1 && f.Is(protowire.BytesType) {
			if err := r.resourceLogs(f.Bytes); err != nil {
				return err
			}
		}
	}
	return broken("ExportLogsServiceRequest", f.Err())
}

// broken names the message that an error of the wire format is in.
func broken(message string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the body is not a valid ExportLogsServiceRequest: %s: %w; nothing was stored", message, err)
}

// shared returns what all that is in a ResourceLogs or ScopeLogs has in common,
// its fields 1 and 3.
func shared(msg []byte) (of, schemaURL []byte, err error) {
	f := wire.Over(msg)
	for f.Next() {
		switch {
		case f.Num == 1 && f.Is(protowire.BytesType):
			of = f.Bytes
		case f.Num == 3 && f.Is(protowire.BytesType):
			schemaURL = f.Bytes
		}
	}
	return of, schemaURL, f.Err()
}

// resourceLogs reads
//
//	ResourceLogs { resource 1, scope_logs 2, schema_url 3 }
//
// whose fields may come in any order.
func (r *reader) resourceLogs(msg []byte) error {
	var res resource
	var err error
	if res.msg, res.schemaURL, err = shared(msg); err != nil {
		return broken("ResourceLogs", err)
	}
	if err := res.read(); err != nil {
		return err
	}
	f := wire.Over(msg)
	for f.Next() {
		if f.Num == 2 && f.Is(protowire.BytesType) {
			if err := r.scopeLogs(&res, f.Bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads
//
//	Resource { attributes 1, dropped_attributes_count 2 }
func (res *resource) read() error {
	f := wire.Over(res.msg)
	for f.Next() {
		switch {
		case f.Num == 1 && f.Is(protowire.BytesType):
			kv, err := readKeyValue(f.Bytes)
			if err != nil {
				return err
			}
			if text, is := kv.service(); is && res.service == nil {
				res.service = text
			} else {
				res.others = true
			}
		case f.Num == 2 && f.Is(protowire.VarintType):
			res.dropped = f.Value
		}
	}
	return broken("Resource", f.Err())
}

// scopeLogs reads
//
//	ScopeLogs { scope 1, log_records 2, schema_url 3 }
func (r *reader) scopeLogs(res *resource, msg []byte) error {
	var sc scope
	var err error
	if sc.msg, sc.schemaURL, err = shared(msg); err != nil {
		return broken("ScopeLogs", err)
	}
	if err := sc.read(); err != nil {
		return err
	}
	f := wire.Over(msg)
	for f.Next() {
		if f.Num == 2 && f.Is(protowire.BytesType) {
			r.spread += int64(len(res.msg)+len(res.schemaURL)+len(sc.msg)+len(sc.schemaURL)) + int64(len(f.Bytes))
			if err := r.q.Reserve(r.spread); err != nil {
				return err
			}
			if err := r.record(res, &sc, f.Bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads
//
//	InstrumentationScope { name 1, version 2, attributes 3, dropped_attributes_count 4 }
func (sc *scope) read() error {
	f := wire.Over(sc.msg)
	for f.Next() {
		switch {
		case f.Num == 1 && f.Is(protowire.BytesType):
			sc.name = f.Bytes
		case f.Num == 2 && f.Is(protowire.BytesType):
			sc.version = f.Bytes
		case f.Num == 3 && f.Is(protowire.BytesType):
			sc.attributes = true
		case f.Num == 4 && f.Is(protowire.VarintType):
			sc.dropped = f.Value
		}
	}
	return broken("InstrumentationScope", f.Err())
}

func (r *reader) scope(sc *scope) error {
	if len(sc.name) > 0 {
		r.b.Slot(normalize.Logger)
		r.b.String(sc.name)
	}
	r.textAttr(nameScopeVersion, sc.version)
	r.textAttr(nameScopeURL, sc.schemaURL)
	r.countAttr(nameScopeLost, sc.dropped)
	if !sc.attributes {
		return nil
	}
	r.b.Attr(nameScope)
	return r.members(sc.msg, 3, false)
}

func (r *reader) resource(res *resource) error {
	if len(res.service) > 0 {
		r.b.Slot(normalize.Service)
		r.b.String(res.service)
	}
	r.textAttr(nameResourceURL, res.schemaURL)
	r.countAttr(nameResourceLost, res.dropped)
	if !res.others {
		return nil
	}
	r.b.Attr(nameResource)
	return r.members(res.msg, 1, true)
}

// Names of attributes that are this package's.
var (
	nameBody           = []byte("body")
	nameObserved       = []byte("observed_time")
	nameSeverityText   = []byte("severity_text")
	nameSeverityNumber = []byte("severity_number")
	nameFlags          = []byte("flags")
	nameDropped        = []byte("dropped_attributes_count")
	nameEvent          = []byte("event_name")
	nameResource       = []byte("resource")
	nameResourceURL    = []byte("resource.schema_url")
	nameResourceLost   = []byte("resource.dropped_attributes_count")
	nameScope          = []byte("scope.attributes")
	nameScopeVersion   = []byte("scope.version")
	nameScopeURL       = []byte("scope.schema_url")
	nameScopeLost      = []byte("scope.dropped_attributes_count")
)
