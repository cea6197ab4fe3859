package collector

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/rollway/rollway/collector/clients"
	"github.com/rollway/rollway/collector/enrich"
	"github.com/rollway/rollway/collector/ledger"
	"github.com/rollway/rollway/internal/probe"
)

// Pipeline says how a collector fares, from its receivers to its sinks. Counts begin with the process.
// A token of a tenant gets what belongs to the tenant: Account, Receivers and Rules.
type Pipeline struct {
	ledger.Account
	Receivers []PipelineReceiver `json:"receivers"`
	Rules     []PipelineRule     `json:"rules"`

	*PipelineOfAll
}

// PipelineOfAll is what concerns all tenants.
type PipelineOfAll struct {
	Ready       string             `json:"not_ready"` // why no lines can be stored; "": they can
	Ignored     map[string]uint64  `json:"ignored"`   // what is no log, by kind
	Refused     []PipelineRefusal  `json:"refused"`   // requests and connections that were turned away
	Journal     PipelineJournal    `json:"journal"`
	Sinks       []PipelineSink     `json:"sinks"`
	DeadLetters ledger.DeadLetters `json:"dead_letters"`
	Ledger      PipelineLedger     `json:"ledger"`
	Connections int                `json:"connections"` // of HTTP and gRPC
	Queries     int                `json:"queries"`     // that run
	Tails       int                `json:"tails"`
}

// PipelineReceiver is what came in by a path or protocol from the clients that are remembered, see
// package clients.
type PipelineReceiver struct {
	Receiver string    `json:"receiver"`
	Clients  int       `json:"clients"`
	Requests uint64    `json:"requests"`
	Events   uint64    `json:"events"`
	Bytes    uint64    `json:"bytes"` // as sent
	Rejected uint64    `json:"rejected"`
	Refused  uint64    `json:"refused"`
	Last     time.Time `json:"last"`
}

// PipelineRule is one rule.
type PipelineRule struct {
	enrich.RuleInfo
	Dropped uint64 `json:"dropped"`
}

// PipelineRefusal is what was turned away at a receiver for a reason.
type PipelineRefusal struct {
	Receiver string `json:"receiver"`
	Reason   string `json:"reason"`
	Count    uint64 `json:"count"`
}

// PipelineJournal is the journal and its disk.
type PipelineJournal struct {
	First         uint64    `json:"first_offset"`
	Next          uint64    `json:"next_offset"`
	Synced        uint64    `json:"synced_offset"`
	Segments      int       `json:"segments"`
	Bytes         int64     `json:"bytes"`
	LineBytes     uint64    `json:"line_bytes"`      // stored since the start
	Oldest        time.Time `json:"oldest,omitzero"` // when the oldest segment was begun
	Newest        time.Time `json:"newest,omitzero"` // when something was written last
	Unpacked      int64     `json:"unpacked_bytes"`  // of segments that wait to be packed
	Full          uint64    `json:"refused_full"`    // batches
	Errors        uint64    `json:"disk_errors"`
	LastError     string    `json:"last_error"`
	LastErrorTime time.Time `json:"last_error_time,omitzero"`
	Findings      int       `json:"findings"` // that nobody has acknowledged

	DiskFree   int64         `json:"disk_free_bytes"` // 0: unknown
	DiskTotal  int64         `json:"disk_total_bytes"`
	RetainSize int64         `json:"retain_size"` // by the configuration; 0: any
	MaxSize    int64         `json:"max_size"`
	RetainAge  time.Duration `json:"retain_age_ns"`
	Forecast   *Forecast     `json:"forecast,omitempty"`
}

// A Forecast says for how long lines are kept if as much comes in as before.
type Forecast struct {
	BytesPerDay float64 `json:"bytes_per_day"` // stored, packed as they are
	Days        float64 `json:"days"`
	Limit       string  `json:"limit"` // what bounds them: retain_age, retain_size, max_size or disk
	Full        bool    `json:"full"`  // then nothing more is stored; else the oldest go
}

// PipelineSink is one sink.
type PipelineSink struct {
	ledger.Sink
	Retries   uint64 `json:"retries"`
	LastError string `json:"last_error"`
}

// PipelineLedger says whether the counts agree.
type PipelineLedger struct {
	Agrees bool           `json:"agrees"`
	Checks []ledger.Check `json:"checks"`
}

func (c *Collector) servePipeline(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, c.Pipeline(tenantOf(r)))
}

// Pipeline returns how the collector fares, for a tenant or, if that is "", for who may see all.
func (c *Collector) Pipeline(tenant string) *Pipeline {
	s := c.Stats()
	p := &Pipeline{Receivers: receiversOf(c.clients.Clients(tenant)), Rules: []PipelineRule{}}
	events := s.Receive.Events
	if tenant != "" {
		events = s.Receive.Tenants[tenant]
		p.Account = ledger.Account{Tenant: tenant, Began: c.began, Taken: time.Now(), Events: eventsOf(&events)}
	}
	for _, rule := range c.state.Load().program.Rules() {
		if tenant != "" && events.Dropped[rule.Name] == 0 {
			continue // it may tell of others
		}
		p.Rules = append(p.Rules, PipelineRule{rule, events.Dropped[rule.Name]})
	}
	if tenant != "" {
		return p
	}
	l := c.Ledger()
	p.Account = l.Account
	p.PipelineOfAll = &PipelineOfAll{
		Ignored: events.Ignored, Refused: c.pipelineRefusals(), Journal: c.pipelineJournal(&s), Sinks: []PipelineSink{}, DeadLetters: l.DeadLetters,
		Connections: s.Connections.Open, Queries: s.Query.RunningQueries, Tails: s.Query.RunningTails,
	}
	p.Ledger.Checks = l.Counts()
	p.Ledger.Agrees = ledger.Agree(p.Ledger.Checks)
	if err := c.health.Ready(); err != nil {
		p.Ready = err.Error()
	}
	for i, sink := range s.Sinks {
		if i < len(l.Sinks) {
			p.Sinks = append(p.Sinks, PipelineSink{l.Sinks[i], sink.Retries, textOf(sink.LastError)})
		}
	}
	return p
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// receiversOf sums up clients by receiver.
func receiversOf(list []clients.Client) []PipelineReceiver {
	sums := []PipelineReceiver{}
	for _, client := range list {
		if client.Events == 0 { // it reads
			continue
		}
		i := slices.IndexFunc(sums, func(r PipelineReceiver) bool { return r.Receiver == client.Receiver })
		if i < 0 {
			i, sums = len(sums), append(sums, PipelineReceiver{Receiver: client.Receiver})
		}
		r := &sums[i]
		r.Clients++
		r.Requests += client.Requests
		r.Events += client.Events
		r.Bytes += client.Bytes
		r.Rejected += client.Rejected
		r.Refused += client.Refused
		if client.Last.After(r.Last) {
			r.Last = client.Last
		}
	}
	slices.SortFunc(sums, func(a, b PipelineReceiver) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.Receiver, b.Receiver))
	})
	return sums
}

// pipelineRefusals sums up refusals by receiver and reason.
func (c *Collector) pipelineRefusals() []PipelineRefusal {
	sums := []PipelineRefusal{}
	c.clients.Refusals(func(r clients.Refusal, n uint64) {
		i := slices.IndexFunc(sums, func(s PipelineRefusal) bool { return s.Receiver == r.Receiver && s.Reason == r.Reason })
		if i < 0 {
			i, sums = len(sums), append(sums, PipelineRefusal{Receiver: r.Receiver, Reason: r.Reason})
		}
		sums[i].Count += n
	})
	sums = slices.DeleteFunc(sums, func(s PipelineRefusal) bool { return s.Count == 0 })
	slices.SortFunc(sums, func(a, b PipelineRefusal) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Receiver, b.Receiver), cmp.Compare(a.Reason, b.Reason))
	})
	return sums
}

func (c *Collector) pipelineJournal(s *Stats) PipelineJournal {
	j, o := &s.Journal, &c.config.Journal
	p := PipelineJournal{
		First: j.First, Next: j.Next, Synced: j.Synced, Segments: j.Segments, Bytes: j.Bytes, LineBytes: j.LineBytes, Unpacked: j.Unpacked,
		Oldest: j.Oldest, Newest: j.Newest, Full: j.Full, Errors: j.WriteErrors + j.SyncErrors, LastError: textOf(j.LastError), LastErrorTime: j.LastErrorTime,
		RetainSize: int64(o.RetainSize), MaxSize: int64(o.MaxSize), RetainAge: o.RetainAge,
	}
	for _, f := range s.Findings {
		if !f.Harmless() {
			p.Findings++
		}
	}
	if space := probe.SpaceOf(c.config.Data); space != nil {
		p.DiskFree, p.DiskTotal = space.Free, space.Total
	}
	p.Forecast = p.forecast(time.Now())
	return p
}

// forecast takes what is stored as a sample of what comes; nil: there is too little of it.
func (p *PipelineJournal) forecast(now time.Time) *Forecast {
	const least = time.Minute
	age := now.Sub(p.Oldest)
	if p.Oldest.IsZero() || age < least || p.Bytes == 0 {
		return nil
	}
	disk := int64(0)
	if p.DiskTotal > 0 {
		disk = p.DiskFree + p.Bytes
	}
	f := &Forecast{BytesPerDay: float64(p.Bytes) / (age.Hours() / 24), Days: math.Inf(1)}
	for _, limit := range []struct {
		name  string
		bytes int64
		days  float64
		full  bool
	}{
		{"retain_age", 0, p.RetainAge.Hours() / 24, false},
		{"retain_size", p.RetainSize, 0, false},
		{"max_size", p.MaxSize, 0, true},
		{"disk", disk, 0, true},
	} {
		days := limit.days
		if limit.bytes > 0 {
			days = float64(limit.bytes) / f.BytesPerDay
		}
		if days > 0 && days < f.Days {
			f.Days, f.Limit, f.Full = days, limit.name, limit.full
		}
	}
	if math.IsInf(f.Days, 1) {
		return nil
	}
	return f
}
