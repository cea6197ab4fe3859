package collector

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/collector/access"
	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/backup"
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/internal/promtext"
)

const backupPath = "/api/backup"

// backups counts what serveBackup has done.
type backups struct {
	sent, failed atomic.Uint64
	last         atomic.Int64 // when the last one was sent, in seconds since 1970
}

func (b *backups) table() promtext.Table {
	return promtext.Table{
		promtext.Counter("backups_sent_total", "Backups that were sent to their end.", b.sent.Load()),
		promtext.Counter("backups_failed_total", "Backups that could not be sent to their end.", b.failed.Load()),
		promtext.Gauge("backup_sent_timestamp_seconds", "When the last one was sent to its end, in seconds since 1970; 0: not since the start.", b.last.Load()),
	}
}

// serveBackup sends a backup to who may read all lines and operate.
func (c *Collector) serveBackup(w http.ResponseWriter, r *http.Request) {
	who, err := c.caller(r, access.Operate)
	if tenant := tenantOf(r); err == nil && tenant != "" {
		err = &receiver.Refusal{Code: http.StatusForbidden, Text: "a backup has the lines of all tenants, and token " + who.token.Name + " is of " + tenant + " alone"}
	}
	switch lost := c.journal.Look(); {
	case err != nil:
		writeRefusal(w, err)
		return
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", "GET")
		writeJSON(w, http.StatusMethodNotAllowed, map[string]any{"error": fmt.Sprintf("method %.20q is not allowed here; use GET", r.Method)})
		return
	case lost != nil:
		writeJSON(w, http.StatusServiceUnavailable, map[string]any{"error": lost.Error()})
		return
	}
	done, ok := c.asQuery(w, r)
	if !ok {
		return
	}
	defer done()
	h := w.Header()
	h.Set("Content-Type", "application/x-tar")
	h.Set("Content-Disposition", `attachment; filename="rollway-backup.tar"`)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	out := &backupStream{c: c, w: w, r: r}
	out.turn.Use(c.admission.CPU, c.payer(r))
	out.turn.SetLow(false)
	out.turn.Begin()
	m, err := c.writeBackup(out)
	out.turn.End()
	told := []any{"to", c.state.Load().client(r), "user", who.user}
	if who.token != nil {
		told = append(told, "token", who.token.Name)
	}
	if err != nil { // the archive lacks its end, by which its reader knows
		c.backups.failed.Add(1)
		c.log.Error("a backup was not sent to its end: "+err.Error(), told...)
		return
	}
	c.backups.sent.Add(1)
	c.backups.last.Store(m.Ended.Unix())
	c.log.Info("a backup was sent", append(told, "first", m.First, "next", m.Next, "bytes", m.Bytes(), "took", time.Since(m.Began).Round(time.Millisecond))...)
	if who.user != "" {
		c.audit(r, who, "backup", map[string]any{"path": backupPath, "first": m.First, "next": m.Next})
	}
}

// writeBackup writes all that the data folder has. Dead letters come first: one that is replayed
// meanwhile is then in the journal, and in the backup not marked.
func (c *Collector) writeBackup(out *backupStream) (*backup.Manifest, error) {
	buffered := bufio.NewWriterSize(out, 256<<10)
	b := backup.NewWriter(buffered)
	b.Collector, b.Manifest.Journal = Version(), c.journal.ID()
	if c.rejected != nil {
		if err := c.rejected.Backup(func(name string, content []byte) error {
			return b.Add(backup.File{Name: backup.Rejected + name, Bytes: int64(len(content))}, bytes.NewReader(content))
		}); err != nil {
			return nil, err
		}
	}
	var err error
	if b.First, b.Next, err = c.journal.Backup(func(f *journal.BackupFile) error {
		return b.Add(backup.File{Name: backup.Journal + f.Name, Bytes: f.Size, First: f.First, End: f.End, Lines: f.Lines}, f.Content)
	}); err != nil {
		return nil, err
	}
	return &b.Manifest, errors.Join(b.Close(), buffered.Flush())
}

// backupStream sends pieces of a backup, and lets others have the processor in between.
type backupStream struct {
	c    *Collector
	w    http.ResponseWriter
	r    *http.Request
	turn admission.Turn
}

var errStopping = errors.New("the collector is shutting down")

// Write implements io.Writer. A client must take each piece in time.
func (s *backupStream) Write(p []byte) (int, error) {
	s.turn.End()
	defer s.turn.Begin()
	if s.c.health.Stopping() {
		return 0, errStopping
	}
	if err := s.r.Context().Err(); err != nil { // a session that has ended
		return 0, err
	}
	deadline := time.Now().Add(s.c.config.Timeouts.Write)
	if err := http.NewResponseController(s.w).SetWriteDeadline(deadline); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return s.w.Write(p)
}
