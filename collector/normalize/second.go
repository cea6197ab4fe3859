package normalize

import (
	"log/slog"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/levels"
	"github.com/rollway/rollway/internal/times"
)

// Second names of slots: what some libraries write instead of the names that
// lookup has. They count when the event is read to its end and has nothing under
// a first name, those of rank 3 when it has none of rank 2 either; of equal
// rank the one that comes first. What does not count is in attrs.
const (
	keyTrace key = keyOther + 1 + iota // objects of the Elastic Common Schema
	keySpan
	keyTime2
	keyInstant
	keyLevel2
	keyPythonLevel  // Python's, and structlog's
	keyMonologLevel // Monolog's
	keyNetLevel     // .NET's
	keySeverity     // a name, or a number of OpenTelemetry
	keyPriority     // a name, or a number of syslog
	keyMsg2
	keyMsgInFields // of Rust's tracing
	keyShort       // GELF's message
	keyMsg3
	keyService2
	keyLogger2
	keyName     // a logger beside Python's level
	keyChannel  // a logger beside Monolog's level
	keyCategory // a logger beside .NET's level
	keyTarget   // a logger beside a message in fields
	keyTraceID2
	keySpanID2
	numKeys
)

// seconds tells of the keys above keyOther.
var seconds = [numKeys]struct {
	slot   key
	rank   uint8
	beside key // what the event must have for it to count; 0: nothing
}{
	keyTrace:        {keyTraceID, ofParts, 0},
	keySpan:         {keySpanID, ofParts, 0},
	keyTime2:        {keyTime, 2, 0},
	keyInstant:      {keyTime, 2, 0},
	keyLevel2:       {keyLevel, 2, 0},
	keyPythonLevel:  {keyLevel, 2, 0},
	keyMonologLevel: {keyLevel, 2, 0},
	keyNetLevel:     {keyLevel, 2, 0},
	keySeverity:     {keyLevel, 2, 0},
	keyPriority:     {keyLevel, 2, 0},
	keyMsg2:         {keyMsg, 2, 0},
	keyMsgInFields:  {keyMsg, 2, 0},
	keyShort:        {keyMsg, 2, 0},
	keyMsg3:         {keyMsg, 3, 0},
	keyService2:     {keyService, 2, 0},
	keyLogger2:      {keyLogger, 2, 0},
	keyName:         {keyLogger, 3, keyPythonLevel},
	keyChannel:      {keyLogger, 3, keyMonologLevel},
	keyCategory:     {keyLogger, 3, keyNetLevel},
	keyTarget:       {keyLogger, 3, keyMsgInFields},
	keyTraceID2:     {keyTraceID, 2, 0},
	keySpanID2:      {keySpanID, 2, 0},
}

// ofParts is the rank of objects of which only parts have a slot, see takeParts.
const ofParts = 4

// lookupSecond returns the key of a name that lookup does not have.
func lookupSecond(name []byte) key {
	switch string(name) {
	case "@t", "_time", "Time", "Timestamp", "asctime", "date", "datetime", "eventTime", "event_time", "time_iso8601", "timeMillis", "__REALTIME_TIMESTAMP":
		return keyTime2
	case "instant":
		return keyInstant
	case "@l", "@level", "LEVEL", "Level", "SeverityText", "detected_level", "log.level", "logLevel", "log_level", "loglevel", "severityText", "severity_text":
		return keyLevel2
	case "levelname":
		return keyPythonLevel
	case "level_name":
		return keyMonologLevel
	case "LogLevel":
		return keyNetLevel
	case "SEVERITY", "Severity", "SeverityNumber", "severityNumber", "severity_number":
		return keySeverity
	case "PRIORITY":
		return keyPriority
	case "@m", "@message", "_msg", "MESSAGE", "Message", "RenderedMessage", "formattedMessage":
		return keyMsg2
	case "short_message":
		return keyShort
	case "@mt", "MessageTemplate", "event":
		return keyMsg3
	case "SYSLOG_IDENTIFIER", "serviceName", "service_name":
		return keyService2
	case "@module", "SourceContext", "log.logger", "loggerName", "logger_name":
		return keyLogger2
	case "name":
		return keyName
	case "channel":
		return keyChannel
	case "Category":
		return keyCategory
	case "target":
		return keyTarget
	case "trace":
		return keyTrace
	case "span":
		return keySpan
	case "@tr", "TraceID", "TraceId", "dd.trace_id", "otelTraceID", "traceID", "traceid":
		return keyTraceID2
	case "@sp", "SpanID", "SpanId", "dd.span_id", "otelSpanID", "spanID", "spanid":
		return keySpanID2
	}
	return keyOther
}

// inFields is the key of a name, which is a JSON string, in an object under
// fields.
func inFields(raw []byte) key {
	if string(raw) == `"message"` {
		return keyMsgInFields
	}
	return keyOther
}

// maxLate is how many members wait for the end of an event; others beyond that
// go to attrs.
const maxLate = 12

// late are the members of an event that wait for its end.
type late struct {
	list [maxLate]lateMember
	n    int
	seen uint32 // bit per key above keyOther
}

type lateMember struct {
	key         key
	name, value jsonwalk.Span
}

// wait puts a member that has found no slot aside until the event's end, and
// reports whether it did; otherwise it belongs to attrs.
func (n *Normalizer) wait(k key, name, value jsonwalk.Span, kind jsontext.Kind) bool {
	if k <= keyOther && (kind != jsontext.KindBeginObject || len(partsOf(k, name.Of(n.body.text))) == 0) || n.late.n == maxLate {
		return false
	}
	n.late.list[n.late.n] = lateMember{k, name, value}
	n.late.n++
	if k > keyOther {
		n.late.seen |= 1 << (k - keyOther)
	}
	return true
}

// settle gives the members that wait their slots, or puts them into attrs.
func (n *Normalizer) settle() {
	l := &n.late
	var placed [maxLate]bool
	for rank := uint8(2); rank <= 3; rank++ {
		for i := range l.n {
			m := &l.list[i]
			if k := m.key; k > keyOther && seconds[k].rank == rank && (seconds[k].beside == 0 || l.seen&(1<<(seconds[k].beside-keyOther)) != 0) {
				placed[i] = n.fillSecond(m)
			}
		}
	}
	if l.seen&(1<<(keyShort-keyOther)) != 0 {
		n.readGELFLevel()
	}
	for i := 0; i < l.n && n.ev.fault == ok; i++ {
		if !placed[i] {
			n.addLate(&l.list[i])
		}
	}
	l.n, l.seen = 0, 0
}

// addLate puts a member into attrs. Objects of the Elastic Common Schema give
// their parts to slots that are free.
func (n *Normalizer) addLate(m *lateMember) {
	text := n.body.text
	if kind := kindOf(text[m.value.Start]); kind != jsontext.KindBeginObject || !n.takeParts(m) {
		n.ev.fault = n.addAttr(m.name, m.value, kind, false)
	}
}

// earliest is the first second of the times that a second name may have: numbers
// under such names that are below it are more often something else.
const earliest = 100_000_000 // March 1973

// fillSecond is fill for a second name.
func (n *Normalizer) fillSecond(m *lateMember) bool {
	ev, slot := &n.ev, seconds[m.key].slot
	if ev.filled&(1<<slot) != 0 {
		return false
	}
	raw := m.value.Of(n.body.text)
	kind := kindOf(raw[0])
	switch m.key {
	case keyTime2:
		sec, nsec, fits := times.Parse(n.plain(raw, kind))
		return fits && sec >= earliest && n.setTime(sec, nsec)
	case keyInstant:
		sec, nsec, fits := parseInstant(raw)
		return fits && n.setTime(sec, nsec)
	case keySeverity:
		level, fits := levels.ParseOTel(n.plain(raw, kind))
		return fits && n.setLevel(level)
	case keyPriority:
		level, fits := levels.ParseSyslog(n.plain(raw, kind))
		return fits && n.setLevel(level)
	}
	return n.fill(slot, m.value, kind)
}

func (n *Normalizer) setTime(sec int64, nsec int) bool {
	n.ev.sec, n.ev.nsec = sec, nsec
	n.ev.filled |= 1 << keyTime
	return true
}

func (n *Normalizer) setLevel(level slog.Level) bool {
	n.ev.level = level
	n.ev.filled |= 1 << keyLevel
	return true
}

// readGELFLevel reads the level of an event in GELF again, where numbers are
// those of syslog.
func (n *Normalizer) readGELFLevel() {
	at := n.ev.slots[keyLevel]
	if raw := at.Of(n.body.text); len(raw) == 1 {
		if level, known := levels.ParseSyslog(raw); known {
			n.ev.level = level
		}
	}
}

// parseInstant reads the object that Log4j writes as a time:
// {"epochSecond":1779972000,"nanoOfSecond":118000000}.
func parseInstant(raw []byte) (sec int64, nsec int, fits bool) {
	seen := 0
	for w := jsonwalk.Members(raw, 0); w.Next(); {
		value := w.Value.Of(raw)
		switch string(w.Name.Of(raw)) {
		case `"epochSecond"`:
			var part int
			if sec, part, fits = times.Unix(value); !fits || part != 0 || len(value) > 11 {
				return 0, 0, false
			}
			seen |= 1
		case `"nanoOfSecond"`:
			nanos, part, isNumber := times.Unix(value)
			if !isNumber || part != 0 || nanos < 0 || nanos > 999_999_999 {
				return 0, 0, false
			}
			nsec = int(nanos)
			seen |= 2
		default:
			return 0, 0, false
		}
	}
	return sec, nsec, seen == 3
}
