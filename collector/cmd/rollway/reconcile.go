package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rollway/rollway/collector"
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/ledger"
	"github.com/rollway/rollway/internal/recordlog"
)

var reconcileCommand = &command{
	name:    "reconcile",
	summary: "compare what a collector counted with what it stored",
	args:    "[DATA]",
	most:    1,
	help: `
Compares the counts of a collector with each other and with its journal:

  received = stored + rejected + failed + duplicate + dropped by rules + ignored
  stored   = the records in the journal since the collector's start
  stored   = delivered + pending + dropped, of each sink
  rejected = dead letters kept + dropped + pending, with those from before

DATA is the collector's data folder, by default ./data. The counts come from
-addr if a collector runs on it, otherwise from the file that the last collector
left when it stopped. A killed collector leaves none: then only the journal is
checked. With -addr or ROLLWAY_ADDR and no DATA only the counts are compared.

reconcile reads every record of the journal and checks checksums, offsets, the
records of each segment, keys stored twice and the cursors of sinks. It changes
nothing. The table says how many events may have no outcome yet.

The exit status is 1 if something differs or cannot be read.

Examples:
  rollway reconcile /var/lib/rollway -addr http://127.0.0.1:4318
  rollway reconcile -addr https://logs.example:4318 -o json
`,
	setup: setupReconcile,
}

func setupReconcile(flags *flag.FlagSet) action {
	data := flags.String("data", "", "the same as DATA, a `DIR`, as serve takes it")
	return asking(flags, func(ctx context.Context, c *call, cl *client, args []string) error {
		if *data != "" {
			args = append(args, *data)
		}
		if len(args) > 1 {
			return usagef("give one folder at most, not %d", len(args))
		}
		r := reconciliation{data: strings.Join(args, "")}
		asked := r.data == "" && os.Getenv(addrEnv) != ""
		flags.Visit(func(f *flag.Flag) { asked = asked || f.Name == "addr" })
		if r.data == "" && !asked {
			r.data = "data"
		}
		if err := r.run(ctx, cl, asked); err != nil {
			return interrupted(ctx, err)
		}
		err := c.show(r.result(), r.text())
		if err == nil && !r.agrees() {
			err = errSaid
		}
		return err
	})
}

// reconciliation is one comparison.
type reconciliation struct {
	data   string         // folder; "": compare counts only
	addr   string         // of the running collector; "": none
	ledger *ledger.Ledger // nil: none was left
	audit  *journal.AuditReport

	counts  []ledger.Check
	records []ledger.Check
	journal []ledger.Check
}

func (r *reconciliation) agrees() bool {
	return ledger.Agree(slices.Concat(r.counts, r.records, r.journal))
}

// run gets the ledger, reads the journal and compares them.
func (r *reconciliation) run(ctx context.Context, cl *client, asked bool) (err error) {
	running := asked
	if r.data != "" && !asked {
		if running, err = r.inUse(); err != nil {
			return err
		}
	}
	if running {
		r.addr = cl.base
		r.ledger, err = askLedger(ctx, cl)
	} else {
		r.ledger, err = ledger.Load(r.data)
	}
	if err != nil {
		return err
	}
	if r.ledger != nil {
		r.counts = r.ledger.Counts()
	}
	if r.data == "" {
		return nil
	}
	if err := r.readJournal(ctx, cl); err != nil || running {
		return err
	}
	began, err := r.inUse()
	if err == nil && began {
		err = fmt.Errorf("a collector has started on %s meanwhile; try again", r.data)
	}
	return err
}

// inUse reports whether a collector is running on the folder.
func (r *reconciliation) inUse() (bool, error) {
	running, err := recordlog.InUse(r.folder())
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = fmt.Errorf("no collector data found: %w", err)
	case err != nil:
		err = fmt.Errorf("check whether a collector is running: %w", err)
	}
	return running, err
}

func (r *reconciliation) folder() string { return collector.JournalFolder(r.data) }

// readJournal reads the journal and compares it with itself and the ledger.
func (r *reconciliation) readJournal(ctx context.Context, cl *client) error {
	o, first := journal.AuditOptions{}, uint64(0)
	if l := r.ledger; l != nil {
		o = journal.AuditOptions{From: l.First, KeysFrom: l.Start, MaxKeys: l.MaxKeys, KeyAge: l.KeyAge}
		first = l.First
	}
	audit, err := journal.Audit(r.folder(), o)
	if err != nil {
		return err
	}
	r.audit = &audit
	if r.ledger != nil && r.ledger.Tenant != "" {
		return fmt.Errorf("the token is told the account of tenant %s alone, which cannot be compared with the journal: leave the folder out, or use a token without a tenant", r.ledger.Tenant)
	}
	if r.ledger != nil && audit.ID != r.ledger.Journal {
		return fmt.Errorf("the ledger belongs to another journal: the one in %s is %s, the ledger names %s", r.data, cmp.Or(audit.ID, "nameless"), cmp.Or(r.ledger.Journal, "nameless"))
	}
	if r.addr != "" { // retention may have moved the first offset
		now, err := askLedger(ctx, cl)
		if err != nil {
			return err
		}
		first = now.First
	}
	r.journal = ledger.Sound(&audit, first)
	if r.ledger != nil {
		r.records = r.ledger.Records(&audit, first)
	}
	return nil
}

func askLedger(ctx context.Context, cl *client) (*ledger.Ledger, error) {
	l := new(ledger.Ledger)
	return l, cl.getJSON(ctx, "/api/ledger", l)
}

// found is the journal in the output of -o json.
type found struct {
	Segments []journal.SegmentReport `json:"segments"`
	Records  int64                   `json:"records"`
	Bytes    int64                   `json:"bytes"`
	First    uint64                  `json:"first_offset"`
	Next     uint64                  `json:"next_offset"`
	Keys     int                     `json:"keys"`
	Cursors  []journal.CursorReport  `json:"cursors"`
	Findings []string                `json:"findings"`
}

func (r *reconciliation) result() any {
	out := struct {
		Agrees  bool           `json:"agrees"`
		Checks  []ledger.Check `json:"checks"`
		Ledger  *ledger.Ledger `json:"ledger"`
		Journal *found         `json:"journal"`
	}{Agrees: r.agrees(), Checks: slices.Concat(r.counts, r.records, r.journal), Ledger: r.ledger}
	if a := r.audit; a != nil {
		out.Journal = &found{a.List, a.Records, a.Bytes, a.First, a.Next, a.Keys, a.Cursors, nil}
		for _, f := range a.Findings {
			out.Journal.Findings = append(out.Journal.Findings, f.String())
		}
	}
	return out
}

func (r *reconciliation) text() string {
	var b strings.Builder
	switch l := r.ledger; {
	case l == nil:
		fmt.Fprintf(&b, "%s: no counts, because the last collector was killed; only the journal is checked\n", appendPlain(nil, r.data))
	case r.addr != "":
		fmt.Fprintf(&b, "%s, running since %s\n", r.addr, l.Began.Local().Format(time.DateTime))
	default:
		fmt.Fprintf(&b, "%s, of a collector that ran from %s to %s\n", appendPlain(nil, r.data), l.Began.Local().Format(time.DateTime), l.Taken.Local().Format(time.DateTime))
	}
	if l := r.ledger; l != nil && l.InHand > 0 {
		fmt.Fprintf(&b, "events are coming in: up to %s had no outcome yet\n", plural(int(l.InHand), "event"))
	}
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	section := func(title string, list []ledger.Check) {
		if len(list) == 0 {
			return
		}
		fmt.Fprintf(table, "\n%s\tcounted\tfound\t\t\n", title)
		for _, c := range list {
			state := "agrees"
			if !c.Agrees {
				state = "DIFFERS"
			}
			fmt.Fprintf(table, "  %s\t%d\t%d\t%s\t%s\n", c.What, c.Counted, c.Found, state, appendPlain(nil, c.Detail))
		}
	}
	section("counts", r.counts)
	section("counts and journal", r.records)
	section("journal", r.journal)
	table.Flush() // into memory
	if a := r.audit; a != nil {
		fmt.Fprintf(&b, "\n%s in %s in %s, %s\n", plural(int(a.Records), "record"), byteCount(a.Bytes), plural(len(a.List), "segment"), plural(a.Keys, "key"))
		for _, f := range a.Findings {
			fmt.Fprintf(&b, "  %s\n", appendPlain(nil, f.String()))
		}
	}
	verdict := "NOT ALL AGREES"
	if r.agrees() {
		verdict = "all agrees"
	}
	fmt.Fprintf(&b, "\n%s\n", verdict)
	return trailing.ReplaceAllString(b.String(), "")
}

// trailing matches the spaces at the end of a line, which tabwriter leaves.
var trailing = regexp.MustCompile(`(?m) +$`)
