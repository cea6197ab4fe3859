package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rollway/rollway/collector/backup"
	"github.com/rollway/rollway/internal/disk"
)

var backupCommand = &command{
	name:    "backup",
	summary: "copy what a running collector keeps to a file",
	args:    "-to FILE",
	help: `
Writes all that a running collector keeps to FILE, a tar archive: each line that
was stored before the start, the keys of requests, the cursors of sinks and the
dead letters. It does not have the configuration and the files that it names.
'rollway restore' makes a data folder of FILE.

Lines are stored and deleted as usual meanwhile; what retention deletes before
it was read is left out, from the oldest line on. FILE is read again and each
line compared with its checksum before it takes the place of an older FILE. A
backup that was cut off is not left. 'rollway verify FILE' checks it later.

It takes a token with the rights to read and to operate, and without a tenant.

The exit status is 1 if there is no backup, or if the collector's journal has
damage, which the backup then has too.

Examples:
  rollway backup -to /backup/rollway.tar
  rollway backup -to "/backup/rollway-$(date +%F).tar" -addr https://logs.example:4318
`,
	setup: setupBackup,
}

func setupBackup(flags *flag.FlagSet) action {
	to := flags.String("to", "", "write the backup to `FILE`")
	return asking(flags, func(ctx context.Context, c *call, cl *client, _ []string) error {
		if *to == "" {
			return usagef("-to FILE is missing")
		}
		return takeBackup(ctx, c, cl, *to)
	})
}

func takeBackup(ctx context.Context, c *call, cl *client, to string) (err error) {
	resp, err := cl.get(ctx, "/api/backup", nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	part := to + ".part"
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(part) // unless it has its name by then
	defer f.Close()       // synced, if it is of use
	in := &progress{Reader: resp.Body, line: statusLine{w: c.stderr.file, on: c.stderr.terminal, width: c.stderr.width}}
	size, err := io.Copy(f, in)
	in.line.clear()
	if err != nil {
		return fmt.Errorf("the backup was cut off after %s: %w; the collector's log may say why", byteCount(size), err)
	}
	if err := f.Sync(); err != nil {
		return err
	}
	r, err := backup.Read(f, size, "")
	if err != nil {
		return err
	}
	if err := os.Rename(part, to); err != nil {
		return err
	}
	if err := (disk.Real{}).SyncDir(filepath.Dir(to)); err != nil {
		return err
	}
	return sayBackup(c, to, r)
}

// progress shows on a terminal how much was read.
type progress struct {
	io.Reader
	line statusLine
	n    int64
}

func (p *progress) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.n += int64(n)
	p.line.show(func() string { return byteCount(p.n) })
	return n, err
}

// sayBackup says what a backup has, and fails if some of it was damaged.
func sayBackup(c *call, path string, r *backup.Report) error {
	if err := c.show(struct {
		Path string `json:"path"`
		*backup.Report
	}{path, r}, fmt.Sprintf("%s: %s\n", appendPlain(nil, path), describeBackup(r))); err != nil {
		return err
	}
	for _, f := range r.Findings {
		c.say("  %s", appendPlain(nil, f))
	}
	if len(r.Findings) > 0 {
		return fmt.Errorf("%s of the collector's journal are damaged or missing, there too", plural(len(r.Findings), "part"))
	}
	return nil
}

func describeBackup(r *backup.Report) string {
	return fmt.Sprintf("backup of %s, %s in %s, each line checked",
		r.Began.Local().Format("2006-01-02 15:04:05"), records(int64(r.Found), r.First, r.Next, r.Bytes()), plural(len(r.Files), "file"))
}

var restoreCommand = &command{
	name:    "restore",
	summary: "make a data folder of a backup",
	args:    "FILE -data DIR",
	needs:   "FILE",
	most:    1,
	help: `
Makes DIR, which must be empty or not exist, the data folder of a collector as
FILE has it, which 'rollway backup' has written. Each line is compared with its
checksum, in FILE and once more in DIR. If FILE is damaged or was cut off, it
says where, and nothing is left in DIR.

Run it as the user that the collector runs as, which must own the files. Sinks
go on where they were when the backup was taken: what they have delivered since
then, they deliver again if it is in the backup.

The exit status is 1 if nothing was restored, or if the collector's journal had
damage when the backup was taken.

Examples:
  rollway restore /backup/rollway.tar -data /var/lib/rollway
  sudo -u rollway rollway restore /backup/rollway.tar -data /var/lib/rollway
`,
	setup: setupRestore,
}

func setupRestore(flags *flag.FlagSet) action {
	data := flags.String("data", "", "the data folder `DIR` to make")
	return func(c *call, args []string) error {
		if *data == "" {
			return usagef("-data DIR is missing")
		}
		r, err := backup.Restore(args[0], *data)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return sayBackup(c, *data, r)
	}
}
