package normalize

import (
	"bytes"

	"github.com/rollway/rollway/collector/fingerprint"
	"github.com/rollway/rollway/collector/stacktrace"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// FingerprintName is the attribute of events with an error that failures have in common, see
// package fingerprint.
const FingerprintName = "error.fingerprint"

var fingerprintName = []byte(FingerprintName)

// addFingerprint adds the fingerprint of the error, unless the event has one or no room for it.
func (n *Normalizer) addFingerprint() {
	const most = len(`"":"",`) + len(FingerprintName) + fingerprint.Size
	if found, _ := n.names.find(fingerprintName); found >= 0 || n.limits.NoFingerprint || n.names.len() >= n.limits.MaxFields ||
		n.limits.MaxKeyBytes < len(fingerprintName) || n.limits.MaxValueBytes < fingerprint.Size || !n.roomFor(len(n.attrs)+most) {
		return
	}
	var h fingerprint.Hash
	text, value := n.body.text, n.ev.slots[keyError]
	if len(n.failure.value) > 0 {
		text, value = n.failure.value, jsonwalk.Span{End: len(n.failure.value)}
	}
	if len(n.attrs)+most+value.Len() > n.limits.MaxEventBytes {
		return
	}
	said := false // type or message
	switch text[value.Start] {
	case '"':
		t := n.traceOf(value.Of(text))
		h.Type(t.Type)
		if t.Type != nil {
			n.addMessage(&h, t.Message)
		} else {
			n.addMessage(&h, n.textOf(value.Of(text)))
		}
		said = true
	case '{':
		m := membersOf(text, value.Start)
		said = m[roleType].Len()+m[roleMessage].Len() > 0
		h.Type(n.textOf(m[roleType].Of(text)))
		n.addMessage(&h, n.textOf(m[roleMessage].Of(text)))
		if !said {
			n.addMessage(&h, n.textOf(n.ev.slots[keyMsg].Of(n.body.text)))
		}
		if n.addStack(&h, text, m[roleStack]); n.failure.inMessage {
			h.Stack(n.textOf(n.ev.slots[keyMsg].Of(n.body.text)))
		}
	default:
		n.addMessage(&h, n.textOf(n.ev.slots[keyMsg].Of(n.body.text)))
	}
	var buf [fingerprint.Size]byte
	sum := h.Append(buf[:0])
	if len(sum) == 0 {
		return
	}
	n.names.add(fingerprintName)
	n.attrs = append(append(append(n.attrs, '"'), FingerprintName...), `":"`...)
	n.attrs = append(append(n.attrs, sum...), `",`...)
}

func (n *Normalizer) addMessage(h *fingerprint.Hash, text []byte) {
	n.scratch.Template = h.Message(text, n.scratch.Template)
}

// addStack adds the frames of a stack: a text, a list, or an object that has one.
func (n *Normalizer) addStack(h *fingerprint.Hash, text []byte, stack jsonwalk.Span) {
	if stack.Len() == 0 {
		return
	}
	at := stack.Start
	switch text[at] {
	case '"':
		h.Stack(n.textOf(stack.Of(text)))
		return
	case '{':
		for w := jsonwalk.Members(text, at); ; {
			if !w.Next() {
				return
			}
			if w.Is("frames") && w.Kind() == '[' {
				at = w.Value.Start
				break
			}
		}
	}
	for w := jsonwalk.Elements(text, at); w.Next(); {
		switch raw := w.RawValue(); raw[0] {
		case '"':
			f, last := stacktrace.Line(raw[1 : len(raw)-1])
			if last {
				h.Last()
			}
			if len(f.Func)+len(f.File) > 0 {
				h.Frame(f, fingerprint.IsApp(f))
			}
		case '{':
			addFrame(h, raw)
		}
	}
}

// addFrame adds a frame that is an object.
func addFrame(h *fingerprint.Hash, object []byte) {
	f, class := frameOf(object)
	app := len(class) == 0 || fingerprint.IsApp(stacktrace.Frame{Func: class})
	for w := jsonwalk.Members(object, 0); w.Next(); {
		raw := w.RawValue()
		if w.Kind() != '"' {
			switch {
			case w.Is("lineno"): // of Python
				h.Last()
			case w.Is("in_app") && raw[0] == 'f':
				app = false
			}
		}
	}
	h.Frame(f, app && fingerprint.IsApp(f))
}

// frameOf returns what an object tells of a frame, and its class.
func frameOf(object []byte) (f stacktrace.Frame, class []byte) {
	for w := jsonwalk.Members(object, 0); w.Next(); {
		raw := w.RawValue()
		if w.Kind() != '"' {
			continue
		}
		switch raw = raw[1 : len(raw)-1]; string(w.RawName()) {
		case `"function"`, `"methodName"`, `"method"`, `"func"`, `"name"`:
			f.Func = raw
		case `"className"`, `"class"`, `"module"`:
			class = raw
		case `"filename"`, `"fileName"`, `"file"`, `"source"`:
			f.File = raw
		}
	}
	if len(f.File) == 0 && len(class) > 0 { // Java's, as JBoss writes it: Cart$Pay is in Cart.java
		f.File = class[bytes.LastIndexByte(class, '.')+1:]
		if i := bytes.IndexByte(f.File, '$'); i > 0 {
			f.File = f.File[:i]
		}
	}
	return f, class
}
