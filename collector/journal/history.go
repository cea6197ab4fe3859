package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// The history remembers what was found until an operator acknowledges it, and where the
// journal ended, for when the manifest is missing. The header's first record and flags are
// those of the manifest, the id and the record of the segment before are the first ones of
// the oldest and of the newest segment. The body is a JSON object: the journal's ID and the
// findings. The file of what was acknowledged is alike; verify writes it, and the journal
// only reads it.
const (
	historyFile = "HISTORY"
	ackFile     = "ACKNOWLEDGED"

	// maxFindings bounds what is kept. The log has the others.
	maxFindings = 1000
	maxHistory  = 16 << 20
)

type history struct {
	ID       string    `json:"journal"`
	Findings []Finding `json:"findings"`
	Scrubbed scrubbed  `json:"scrubbed"`

	next, oldest, newest uint64
	closed               bool
}

func (h *history) append(dst []byte) []byte {
	body, _ := json.Marshal(h) // nothing in it can fail
	head := recordlog.Header{Kind: recordlog.History, First: h.next, Prev: h.newest, ID: h.oldest, Created: time.Now().UnixNano()}
	if h.closed {
		head.Flags = flagClosed
	}
	return recordlog.AppendFile(dst, head, body)
}

func (j *Journal) readHistory(name string) (*history, error) {
	path := filepath.Join(j.dir, name)
	b, err := recordlog.ReadFile(j.fs, path, maxHistory)
	if err != nil {
		return nil, err
	}
	head, body, err := recordlog.ParseFile(b, recordlog.History, path)
	if err != nil {
		return nil, err
	}
	h := &history{next: head.First, oldest: head.ID, newest: head.Prev, closed: head.Flags&flagClosed != 0}
	if json.Unmarshal(body, h) != nil {
		return nil, recordlog.ErrDamaged
	}
	return h, nil
}

// recoverHistory reads both files; nil: there is no sound history.
func (j *Journal) recoverHistory() *history {
	acked, err := j.readHistory(ackFile)
	if err == nil {
		j.findings.acked = acked.Findings
	} else if !errors.Is(err, fs.ErrNotExist) {
		j.find(Finding{Kind: recordlog.Damaged, File: ackFile, Detail: err.Error()})
	}
	h, err := j.readHistory(historyFile)
	if err == nil {
		j.findings.kept, j.scrubbed = h.Findings, h.Scrubbed
		return h
	}
	_, manifestErr := readManifest(j.fs, j.dir)
	if !errors.Is(err, fs.ErrNotExist) || manifestErr == nil {
		j.find(Finding{Kind: recordlog.Rebuilt, File: historyFile, Detail: fmt.Sprintf("what was found before is forgotten: %v", err)})
	}
	return nil
}

// otherEnds returns where the journal ended at least, as others know.
func (j *Journal) otherEnds() map[string]uint64 {
	ends := make(map[string]uint64)
	if j.o.Last.ID != "" && j.o.Last.ID == j.id {
		ends["the ledger"] = j.o.Last.Next
	}
	var r AuditReport
	_ = r.readCursors(j) // those that cannot be read tell nothing
	for _, c := range r.Cursors {
		if c.Error == "" {
			ends[cursorFolder+"/"+c.Name] = c.Offset
		}
	}
	return ends
}

// keepLocked keeps f, and reports whether it was not kept yet.
func (j *Journal) keepLocked(f Finding, now time.Time) bool {
	if f.Harmless() || covers(j.findings.acked, f) || covers(j.findings.kept, f) {
		return false
	}
	if len(j.findings.kept) < maxFindings {
		f.Seen = now.UTC().Round(0)
		j.findings.kept = append(j.findings.kept, f)
		j.manifest.dirty = true
	}
	return true
}

// keep reports a finding of a running journal, once, or each time beyond maxFindings.
func (j *Journal) keep(f Finding) {
	j.mu.Lock()
	isNew := j.keepLocked(f, time.Now())
	j.mu.Unlock()
	wake(j.kick)
	if isNew && j.o.OnFinding != nil {
		j.o.OnFinding(f)
	}
}

// historyLocked returns what is not acknowledged.
func (j *Journal) historyLocked() history {
	j.findings.kept = slices.DeleteFunc(j.findings.kept, func(f Finding) bool { return covers(j.findings.acked, f) })
	return history{ID: j.id, Findings: slices.Clone(j.findings.kept), Scrubbed: j.scrubbed}
}

// Findings returns what was found and not acknowledged, by earlier processes too, and what
// Open has found otherwise.
func (j *Journal) Findings() []Finding {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := j.historyLocked().Findings
	for _, f := range j.recovery.Findings {
		if f.Harmless() {
			list = append(list, f)
		}
	}
	return list
}

// readAcknowledged drops what verify has acknowledged meanwhile.
func (j *Journal) readAcknowledged() {
	j.mu.Lock()
	none := len(j.findings.kept) == 0
	j.mu.Unlock()
	if none {
		return
	}
	h, err := j.readHistory(ackFile)
	if err != nil {
		return // Open reports it
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.findings.acked = h.Findings
	if n := len(j.findings.kept); len(j.historyLocked().Findings) < n {
		j.changedLocked()
	}
}

// covers reports whether f is in list: the same finding, the same damage of a segment, or
// records that are known to be missing.
func covers(list []Finding, f Finding) bool {
	_, _, segment := parseName(f.File)
	for from := f.From; f.Kind == recordlog.Missing && from < f.To; {
		i := slices.IndexFunc(list, func(g Finding) bool { return g.Kind == f.Kind && g.From <= from && from < g.To })
		if i < 0 {
			return false
		}
		if from = list[i].To; from >= f.To {
			return true
		}
	}
	return slices.ContainsFunc(list, func(g Finding) bool {
		return g.Kind == f.Kind && g.File == f.File && g.Pos == f.Pos && (segment || g.Seen.Equal(f.Seen))
	})
}

// Acknowledge makes what r found no finding any more, for the journal in dir and for later
// reports. A process may be writing.
func Acknowledge(dir string, r *AuditReport) error {
	return acknowledge(disk.Real{Owned: true}, dir, r)
}

func acknowledge(fsys disk.FS, dir string, r *AuditReport) error {
	h := history{ID: r.ID, Findings: slices.Concat(r.Acknowledged, r.Findings)}
	h.Findings = slices.DeleteFunc(h.Findings, func(f Finding) bool { return f.Harmless() })
	b, path := h.append(nil), filepath.Join(dir, ackFile)
	if len(b) > maxHistory { // which nobody would read
		return fmt.Errorf("acknowledge %d findings: %s would have %d bytes, and at most %d are read; move the most damaged segments away first", len(h.Findings), path, len(b), maxHistory)
	}
	if err := recordlog.WriteFile(fsys, path, b); err != nil {
		return fmt.Errorf("acknowledge what was found: %w", err)
	}
	return nil
}

// remember adds what the history has to r, and moves what was acknowledged.
func (r *AuditReport) remember(j *Journal) {
	var acked, kept []Finding
	for name, list := range map[string]*[]Finding{ackFile: &acked, historyFile: &kept} {
		h, err := j.readHistory(name)
		r.check(name, err)
		if err == nil {
			*list = h.Findings
		}
	}
	for _, f := range kept {
		if !covers(r.Findings, f) {
			r.find(f)
		}
	}
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool {
		known := !f.Harmless() && covers(acked, f)
		if known {
			r.Acknowledged = append(r.Acknowledged, f)
		}
		return known
	})
}
