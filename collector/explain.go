package collector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/endpoints"
	"github.com/rollway/rollway/collector/enrich"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/gelf"
	"github.com/rollway/rollway/collector/receiver/otlp"
	"github.com/rollway/rollway/collector/receiver/syslog"
)

const (
	explainEventPath = "/api/explain-event"

	// Bounds of one question.
	maxExplained   = 256 << 10 // bytes of the event
	maxEvents      = 20        // that are in it
	maxExplanation = 4 << 20   // bytes of all lines in the answer
)

// Explanation says what would become of the events of a request.
type Explanation struct {
	As     string           `json:"as"` // the receiver
	Events []ExplainedEvent `json:"events"`
	// Rejected are those events that are none of Events, or whose lines are too large.
	Rejected []ExplainedRejection `json:"rejected"`
	Ignored  int                  `json:"ignored,omitempty"` // what is no log, such as a session of Sentry
	Error    string               `json:"error,omitempty"`   // why the request as a whole is refused
	Cut      bool                 `json:"cut,omitempty"`     // lines are left out, as there are too many
}

// ExplainedEvent is an event that the receiver can read.
type ExplainedEvent struct {
	Steps   []ExplainedStep `json:"steps"`
	Dropped string          `json:"dropped,omitempty"` // the rule by which it is not stored
	Line    json.RawMessage `json:"line,omitempty"`    // what is stored
}

// ExplainedStep is what one step does to an event.
type ExplainedStep struct {
	Step   string          `json:"step,omitempty"` // the name of what is no rule
	Rule   string          `json:"rule,omitempty"`
	Action string          `json:"action,omitempty"` // of the rule
	Did    string          `json:"did"`
	Line   json.RawMessage `json:"line,omitempty"` // after the step, if it has changed
}

// ExplainedRejection says why an event cannot be stored.
type ExplainedRejection struct {
	Index  int    `json:"index"`
	Reason string `json:"reason"`
	Detail string `json:"detail"`
}

// serveExplainEvent answers what would become of the body if the caller sent it to the receiver that
// ?as= names: a path, syslog or GELF. Nothing is stored or counted.
func (c *Collector) serveExplainEvent(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		writeJSON(w, http.StatusMethodNotAllowed, map[string]any{"error": fmt.Sprintf("method %.20q is not allowed here; use POST", r.Method)})
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxExplained))
	if err != nil {
		writeJSON(w, http.StatusRequestEntityTooLarge, map[string]any{"error": fmt.Sprintf("at most %d bytes are looked at", maxExplained)})
		return
	}
	as := r.URL.Query().Get("as")
	if as == "" {
		as = logsPath
	}
	done, ok := c.asQuery(w, r)
	if !ok {
		return
	}
	defer done()
	answer := c.explain(r, as, body)
	if answer == nil {
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": fmt.Sprintf("no receiver is called %.100q; name a path, such as %s, syslog or GELF", as, logsPath)})
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

// explain returns nil if there is no such receiver.
func (c *Collector) explain(r *http.Request, as string, body []byte) *Explanation {
	s, turn := c.state.Load(), admission.Turn{}
	turn.Use(c.admission.CPU, c.payer(r))
	limits := c.receiveOptions().Limits
	limits.MaxEvents = min(limits.MaxEvents, maxEvents)
	e := explainer{answer: Explanation{As: as, Events: []ExplainedEvent{}, Rejected: []ExplainedRejection{}}, norm: normalize.New(limits), batch: new(normalize.Batch)}
	e.terse = tenantOf(r) != "" // their names may tell of others
	e.norm.Pause(turn.Yield)
	e.norm.SetExtras(s.extrasOf(callerOf(r)))
	e.norm.SetEnricher(s.program.Noting(e.note), s.client(r))
	e.batch.Within(room(maxExplanation), 0)
	turn.Begin()
	known, err := e.decode(r, as, body)
	turn.End()
	if !known {
		return nil
	}
	return e.result(err)
}

// extrasOf returns what the events of a caller get.
func (s *state) extrasOf(who caller) *normalize.Extras {
	if who.token != nil {
		return who.token.Extras()
	}
	return s.policy.Extras
}

// room is a normalize.Room of so many bytes.
type room int

func (r room) Grow(memory, lines int) bool { return max(memory, lines) <= int(r) }

// explainer collects what steps do.
type explainer struct {
	answer Explanation
	norm   *normalize.Normalizer
	batch  *normalize.Batch
	size   int  // bytes of lines in answer
	terse  bool // rules that have no effect are left out
}

// decode has the receiver read the body; known is false if there is none.
func (e *explainer) decode(r *http.Request, as string, body []byte) (known bool, err error) {
	at := time.Now()
	chunk := &receiver.Chunk{Data: body, Received: at, Norm: e.norm, Batch: e.batch, Peer: peerOf(r)}
	switch {
	case strings.EqualFold(as, syslog.Protocol{}.Name()):
		syslog.Protocol{MaxMessage: maxExplained}.DecodePacket(chunk)
		return true, nil
	case strings.EqualFold(as, gelf.Protocol{}.Name()):
		gelf.Protocol{MaxMessage: maxExplained}.DecodePacket(chunk)
		return true, nil
	}
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, as, http.NoBody)
	if err != nil || !strings.HasPrefix(as, "/") {
		return false, nil
	}
	req.Header["Content-Type"] = r.Header["Content-Type"]
	p := receiver.Plain
	if req.URL.Path != logsPath {
		p, req = endpoints.Find(req)
	}
	switch p {
	case nil:
		return false, nil
	case otlp.GRPC:
		p = otlp.Protocol // the same messages without frames
	}
	return true, p.Decode(&receiver.Request{HTTP: req, Body: body, Received: at, Norm: e.norm, Batch: e.batch})
}

func peerOf(r *http.Request) netip.AddrPort {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr) // else nobody knows
	return peer
}

// note is told of the steps of one event after the other.
func (e *explainer) note(n enrich.Note) {
	a := &e.answer
	if n.Step == enrich.StepRead {
		a.Events = append(a.Events, ExplainedEvent{})
	}
	if e.terse && n.Rule != "" && n.Did != enrich.Changed && n.Did != enrich.Dropped {
		return
	}
	event := &a.Events[len(a.Events)-1]
	step := ExplainedStep{Step: n.Step, Rule: n.Rule, Action: n.Action, Did: n.Did}
	switch {
	case e.size+len(n.Line) <= maxExplanation:
		e.size += len(n.Line)
		step.Line = slices.Clone(n.Line)
	default:
		a.Cut = true
	}
	if event.Steps = append(event.Steps, step); n.Did == enrich.Dropped {
		event.Dropped = n.Rule
	}
}

// result completes the answer; err is that of the receiver.
func (e *explainer) result(err error) *Explanation {
	a := &e.answer
	if err != nil {
		a.Error = err.Error()
	}
	if e.batch.Overflowed() {
		a.Cut = true
		return a
	}
	for _, r := range e.batch.Rejected {
		a.Rejected = append(a.Rejected, ExplainedRejection{r.Index, r.Reason, r.Detail})
	}
	a.Ignored = e.batch.IgnoredTotal
	lines := bytes.SplitAfter(e.batch.AppendTo(nil), []byte("\n"))
	for i := range a.Events {
		event := &a.Events[i]
		last := lastLine(event.Steps)
		if event.Dropped == "" && len(lines) > 1 && (last == nil || bytes.Equal(bytes.TrimSuffix(lines[0], []byte("\n")), last)) {
			event.Line, lines = bytes.TrimSuffix(lines[0], []byte("\n")), lines[1:]
		}
	}
	return a
}

// lastLine is the line after the last step that has changed it; nil: it was left out.
func lastLine(steps []ExplainedStep) (line json.RawMessage) {
	for _, s := range steps {
		if s.Line != nil {
			line = s.Line
		}
	}
	return line
}
