package normalize

import (
	"bytes"

	"github.com/rollway/rollway/collector/stacktrace"
	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// role is what a member of an error tells.
type role uint8

const (
	roleType role = iota
	roleMessage
	roleStack
	roleCauses
	numRoles
)

// roleNames are the members of an error in a line, and what others call them, best first.
var roleNames = [numRoles][]string{
	roleType:    {"type", "exc_type", "exception_class", "className", "ClassName", "Type", "class", "kind", "exceptionType", "errorType", "name"},
	roleMessage: {"message", "exc_value", "exception_message", "Message", "errorMessage", "msg", "value"},
	roleStack:   {"stack", "stack_trace", "stacktrace", "stackTrace", "StackTrace", "StackTraceString", "extendedStackTrace", "stepArray", "traceback", "backtrace", "frames", "trace"},
	roleCauses:  {"causes", "cause", "previous", "innerException", "InnerException", "inner_exception", "chain", "InnerExceptions", "causedBy", "aggregateErrors"},
}

// roleKeys are roleNames as members are written.
var roleKeys = func() (keys [numRoles]string) {
	for r := range numRoles {
		keys[r] = `"` + roleNames[r][0] + `":`
	}
	return keys
}()

// failure is the error of an event that tells of it in more than one member.
type failure struct {
	parts [numParts - keyError]jsonwalk.Span // values of its parts, if the event has them
	names [numParts - keyError]jsonwalk.Span // of the members that these are, and of the error itself
	value []byte                             // the error in the line, if it is not as it came

	inMessage bool // its stack is in the message
}

const (
	errorBit = 1 << keyError
	partBits = 1<<keyErrorType | 1<<keyErrorMessage | 1<<keyErrorStack
)

// members are those of an error by their roles; a Span of no bytes: it has none.
type members [numRoles]jsonwalk.Span

// membersOf finds the members of the object at text[start] that have roles. What is under
// the name that a role has in a line is not replaced by another.
func membersOf(text []byte, start int) (m members) {
	var best [numRoles]int
	for w := jsonwalk.Members(text, start); w.Next(); {
		name := w.RawName()
		r, rank := roleOf(name[1 : len(name)-1])
		switch {
		case rank < 0 || best[r] > 0 && rank+1 >= best[r]:
		case fitsRole(r, w.RawValue()):
			m[r], best[r] = w.Value, rank+1
		case rank == 0:
			m[r], best[r] = jsonwalk.Span{}, 1
		}
	}
	return m
}

// roleOf returns the role of a name and its place among others, or -1.
func roleOf(name []byte) (role, int) {
	if len(name) < len("msg") || len(name) > len("exception_message") {
		return 0, -1
	}
	for r := range numRoles {
		for i, known := range roleNames[r] {
			if known == string(name) {
				return r, i
			}
		}
	}
	return 0, -1
}

// ErrorMember is the name in a line of a member of an error, by the name that it came with;
// "" if it is no known one.
func ErrorMember(name string) string {
	if r, rank := roleOf([]byte(name)); rank >= 0 {
		return roleNames[r][0]
	}
	return ""
}

// fitsRole reports whether a value can tell it.
func fitsRole(r role, raw []byte) bool {
	switch r {
	case roleType:
		return raw[0] == '"' && len(raw) > len(`""`)
	case roleMessage:
		return isScalar(raw) && raw[0] != 'n'
	case roleStack:
		return len(raw) > len(`""`) && (raw[0] == '"' || !isScalar(raw))
	}
	return len(raw) > len(`""`) && (raw[0] == '"' || !isScalar(raw))
}

// isError reports whether a value under the name of an error tells of one.
func isError(raw []byte) bool {
	switch raw[0] {
	case '"', '{', '[':
		return jsonwalk.SkipSpace(raw, 1) < len(raw)-1
	case 'n', 'f':
		return false
	}
	return string(raw) != "0"
}

// errorIn returns where the object of an error begins: the value, or the first of a list of
// an error and its causes; -1: there is none.
func errorIn(text []byte, value jsonwalk.Span) int {
	at := value.Start
	if text[at] == '[' {
		w := jsonwalk.Elements(text, at)
		if !w.Next() {
			return -1
		}
		at = w.Value.Start
	}
	if text[at] != '{' {
		return -1
	}
	if m := membersOf(text, at); m[roleType].Len()+m[roleMessage].Len() > 0 || m[roleStack].Len() > 0 && m[roleCauses].Len() > 0 {
		return at
	}
	return -1
}

// fillError takes a member that is an error if it has the form of one. One that tells more
// comes before one that is a text.
func (n *Normalizer) fillError(name, value jsonwalk.Span) bool {
	ev, raw := &n.ev, value.Of(n.body.text)
	switch {
	case raw[0] == '"' && len(raw) > len(`""`):
		if ev.filled&errorBit != 0 {
			return hasLines(raw) && n.fillPart(keyErrorStack, name, value)
		}
	case errorIn(n.body.text, value) < 0:
		return false
	case ev.filled&errorBit != 0:
		old := ev.slots[keyError]
		if n.body.text[old.Start] != '"' || !n.fillPart(keyErrorMessage, n.failure.names[0], old) {
			return false
		}
	}
	ev.slots[keyError], n.failure.names[0] = value, name
	ev.filled |= errorBit
	return true
}

// fillPart takes a member that is a part of the error.
func (n *Normalizer) fillPart(slot key, name, value jsonwalk.Span) bool {
	ev, raw := &n.ev, value.Of(n.body.text)
	fits := raw[0] == '"' || slot == keyErrorStack && raw[0] == '['
	if !fits || len(raw) == len(`""`) || ev.filled&(1<<slot) != 0 {
		return false
	}
	n.failure.parts[slot-keyError], n.failure.names[slot-keyError] = value, name
	ev.filled |= 1 << slot
	return true
}

// gatherError makes the error of what the event tells of it so far.
func (n *Normalizer) gatherError() {
	if n.ev.filled&(errorBit|partBits) != 0 {
		n.readError()
		n.ev.filled &^= partBits
	}
}

// readError makes the one form of an error of what the event tells of it: a text, or an
// object of type, message, stack and causes.
func (n *Normalizer) readError() {
	ev, text := &n.ev, n.body.text
	parts := ev.filled & partBits
	base := ev.slots[keyError]
	if ev.filled&errorBit != 0 {
		switch raw := base.Of(text); {
		case parts == 0 && isScalar(raw) && !(raw[0] == '"' && hasLines(raw) && n.trace(base).Traced):
			return // as it is
		case raw[0] == '"':
			n.demote(base)
			ev.filled &^= errorBit
		case errorIn(text, base) < 0:
			if parts == 0 {
				return
			}
			ev.fault = n.addAttrAs(errorName, base)
			ev.filled &^= errorBit
		}
	}
	if !n.roomFor(len(n.attrs) + len(n.failure.value) + 4*n.errorSize()) {
		ev.fault = tooLarge
	}
	if ev.fault == ok {
		n.failure.value = n.appendError(n.failure.value[:0])
		ev.filled |= errorBit
	}
}

var errorName = []byte(`"error"`)

// failed reports whether the event, which has something under error, tells of an error.
func (n *Normalizer) failed() bool {
	return len(n.failure.value) > 0 || isError(n.ev.slots[keyError].Of(n.body.text))
}

// demote makes a text under the name of an error the message of it, or the stack, or an
// attribute.
func (n *Normalizer) demote(base jsonwalk.Span) {
	if hasLines(base.Of(n.body.text)) {
		if n.trace(base).Traced && n.fillPart(keyErrorStack, n.failure.names[0], base) {
			return
		}
	}
	if n.fillPart(keyErrorMessage, n.failure.names[0], base) {
		return
	}
	said := n.ev.filled&(1<<keyErrorMessage) != 0
	if message := n.failure.parts[keyErrorMessage-keyError]; !said || !bytes.Equal(message.Of(n.body.text), base.Of(n.body.text)) {
		n.ev.fault = n.addAttrAs(errorName, base)
	}
}

// failureName is the name, as JSON, that a part of the error came with.
func (n *Normalizer) failureName(slot key) []byte {
	if name := n.failure.names[slot-keyError]; name.Len() > 0 {
		return name.Of(n.body.text)
	}
	return errorName
}

// trace reads the text of a stack.
func (n *Normalizer) trace(stack jsonwalk.Span) stacktrace.Trace {
	return n.traceOf(stack.Of(n.body.text))
}

func (n *Normalizer) traceOf(raw []byte) stacktrace.Trace {
	if raw[0] != '"' {
		return stacktrace.Trace{}
	}
	return stacktrace.Parse(n.textOf(raw))
}

// textOf is the text of a string or a scalar, valid until the next call.
func (n *Normalizer) textOf(raw []byte) []byte {
	if len(raw) == 0 || raw[0] != '"' {
		return raw
	}
	n.body.escapes = n.body.escapes || bytes.IndexByte(raw, '\\') >= 0 // wherever it is from
	return n.unquoted(cutText(raw, &n.scratch.A))
}

// maxText is how many bytes of a text are read: one that is longer loses its middle.
const maxText = 64 << 10

// cutText returns a JSON string of at most about maxText bytes, with whole lines of raw.
func cutText(raw []byte, scratch *[]byte) []byte {
	if len(raw) <= maxText {
		return raw
	}
	head, tail := raw[:maxText/2], raw[len(raw)-maxText/2:]
	i, j := bytes.LastIndex(head, escapedLF), bytes.Index(tail, escapedLF)
	if i < 0 || j < 0 {
		return emptyString
	}
	*scratch = append(append((*scratch)[:0], head[:i+len(escapedLF)]...), tail[j+len(escapedLF):]...)
	return *scratch
}

var emptyString = []byte(`""`)

// errorSize is about how long the error may become.
func (n *Normalizer) errorSize() (size int) {
	for slot := keyErrorType; slot < numParts; slot++ {
		if n.ev.filled&(1<<slot) != 0 {
			size += n.failure.parts[slot-keyError].Len()
		}
	}
	return size + n.ev.slots[keyError].Len()
}

// appendError appends the error of the event.
func (n *Normalizer) appendError(dst []byte) []byte {
	ev, text := &n.ev, n.body.text
	var m members
	at := -1
	if ev.filled&errorBit != 0 {
		at = errorIn(text, ev.slots[keyError])
		m = membersOf(text, at)
	}
	whole := m
	for r := roleType; r <= roleStack; r++ {
		slot := keyErrorType + key(r)
		switch {
		case ev.filled&(1<<slot) == 0:
		case m[r].Len() == 0:
			whole[r] = n.failure.parts[slot-keyError]
		case !bytes.Equal(m[r].Of(text), n.failure.parts[slot-keyError].Of(text)):
			ev.fault = n.addAttrAs(n.failureName(slot), n.failure.parts[slot-keyError])
		}
	}
	dst = append(dst, '{')
	if whole[roleStack].Len() > 0 && (whole[roleType].Len() == 0 || whole[roleMessage].Len() == 0) {
		t := n.trace(whole[roleStack])
		dst = appendFound(dst, roleType, t.Type, whole[roleType])
		dst = appendFound(dst, roleMessage, t.Message, whole[roleMessage])
	}
	for r := roleType; r <= roleStack; r++ {
		if m[r].Len() == 0 && whole[r].Len() > 0 {
			dst = append(append(append(dst, roleKeys[r]...), whole[r].Of(text)...), ',')
		}
	}
	if at >= 0 {
		rest, left := noList, maxCauses
		if base := ev.slots[keyError]; base.Start != at { // a list
			rest = jsonwalk.Elements(text, base.Start)
			rest.Next()
		}
		dst = appendMembers(dst, text, at, &m, &rest, &left)
	}
	if at < 0 || m[roleCauses].Len() == 0 && ev.slots[keyError].Start == at {
		dst = n.appendTold(dst, whole[roleStack])
	}
	return append(trimComma(dst), '}')
}

// appendFound appends what a stack trace has told, unless the event has said it itself.
func appendFound(dst []byte, r role, found []byte, said jsonwalk.Span) []byte {
	if len(found) == 0 || said.Len() > 0 {
		return dst
	}
	return append(jsonline.AppendStringBytes(append(dst, roleKeys[r]...), found), ',')
}

// appendMembers appends the members of an error, those with roles under their names. rest are
// causes besides, left of them at most; a nil rest: without any.
func appendMembers(dst, text []byte, at int, m *members, rest *jsonwalk.Walk, left *int) []byte {
	for w := jsonwalk.Members(text, at); w.Next(); {
		r := roleType
		for r < numRoles && m[r] != w.Value {
			r++
		}
		switch {
		case r == roleCauses && rest != nil:
			dst = appendCauses(dst, text, w.Value, rest, left)
		case r == roleCauses:
		case r < numRoles:
			dst = append(append(append(dst, roleKeys[r]...), w.RawValue()...), ',')
		default:
			dst = append(append(append(append(dst, w.RawName()...), ':'), w.RawValue()...), ',')
		}
	}
	if rest != nil && m[roleCauses].Len() == 0 {
		dst = appendCauses(dst, text, jsonwalk.Span{}, rest, left)
	}
	return dst
}

// maxCauses is how many causes are read; others stay as they are.
const maxCauses = 16

// appendCauses appends the causes of an error, the nearest first, without those of their own
// if they are in one another, and then those of a list. left is how many may be read.
func appendCauses(dst, text []byte, causes jsonwalk.Span, rest *jsonwalk.Walk, left *int) []byte {
	start := len(dst)
	dst = append(append(dst, roleKeys[roleCauses]...), '[')
	first := len(dst)
	causes = unwrapped(text, causes)
	for causes.Len() > 0 && text[causes.Start] == '{' && *left > 0 && causesIn(text, causes.Start) <= 1 {
		*left--
		m := membersOf(text, causes.Start)
		dst = append(trimComma(appendMembers(append(dst, '{'), text, causes.Start, &m, nil, left)), '}', ',')
		causes = unwrapped(text, m[roleCauses])
	}
	switch {
	case causes.Len() == 0:
	case text[causes.Start] == '[':
		dst = appendList(dst, text, jsonwalk.Elements(text, causes.Start), left)
	default:
		dst = appendCause(dst, text, causes, left)
	}
	dst = appendList(dst, text, *rest, left)
	if len(dst) == first {
		return dst[:start]
	}
	return append(trimComma(dst), ']', ',')
}

// unwrapped is the value of the one member exception that an object has, as of JBoss's
// {"causedBy":{"exception":{…}}}; or what is not such an object.
func unwrapped(text []byte, cause jsonwalk.Span) jsonwalk.Span {
	if cause.Len() > 0 && text[cause.Start] == '{' {
		if w := jsonwalk.Members(text, cause.Start); w.Next() && w.Is("exception") && w.Kind() == '{' {
			if only := w.Value; !w.Next() {
				return only
			}
		}
	}
	return cause
}

func trimComma(b []byte) []byte { return bytes.TrimSuffix(b, comma) }

var comma = []byte(",")

// causesIn counts the members of an object that can be causes.
func causesIn(text []byte, at int) (n int) {
	for w := jsonwalk.Members(text, at); w.Next(); {
		name := w.RawName()
		if r, rank := roleOf(name[1 : len(name)-1]); rank >= 0 && r == roleCauses && fitsRole(r, w.RawValue()) {
			n++
		}
	}
	return n
}

// appendList appends causes that are in a list.
func appendList(dst, text []byte, w jsonwalk.Walk, left *int) []byte {
	for w.Next() {
		dst = appendCause(dst, text, w.Value, left)
	}
	return dst
}

// appendCause appends one cause, with its own in it.
func appendCause(dst, text []byte, cause jsonwalk.Span, left *int) []byte {
	if text[cause.Start] != '{' || *left <= 0 {
		return append(append(dst, cause.Of(text)...), ',')
	}
	*left--
	m, none := membersOf(text, cause.Start), noList
	dst = appendMembers(append(dst, '{'), text, cause.Start, &m, &none, left)
	return append(trimComma(dst), '}', ',')
}

var noList = jsonwalk.Elements([]byte("[]"), 0)
