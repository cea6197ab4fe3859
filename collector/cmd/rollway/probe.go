package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rollway/rollway/internal/probe"
)

var probeCommand = &command{
	name:    "probe",
	summary: "say what a folder supports as the place of logs",
	args:    "DIR",
	help: `
Tries what log files in DIR can have: who may make, rename and remove files
there, direct writes (O_DIRECT) and their alignment, uncached ones
(RWF_DONTCACHE), blocks allocated ahead, space and inodes. Then it measures
writes by size of the chunk, each way that works, alone and with an fsync
behind, and advises which to take: the one that disturbs other programs least,
and the smallest chunk that reaches nine tenths of the best rate.

Buffered and uncached writes go to memory first: what the disk makes of them
shows with the fsync, and in their longest.

It writes one file, of at most -space and a quarter of what is free, for at most
-time, and removes it; where the system allows, the file has no name, so that a
killed probe leaves nothing. On a busy disk the figures are those of a busy
disk.

The exit status is 1 if no file can be written in DIR.

Examples:
  rollway probe /var/log/payment
  rollway probe /var/log/payment -space 256MiB -time 20s
  rollway probe /var/log/payment -json | jq .advice
`,
	setup: setupProbe,
}

func setupProbe(flags *flag.FlagSet) func(*call, []string) error {
	var o probe.Options
	space := 0
	sizeFlag(flags, &space, "space", "most `SIZE` of the file (default 64MiB)")
	flags.DurationVar(&o.Time, "time", 6*time.Second, "most `TIME` that is measured")
	asJSON := flags.Bool("json", false, "print one JSON object")
	return func(c *call, args []string) error {
		switch {
		case len(args) == 0:
			return usagef("DIR is missing")
		case len(args) > 1:
			return usagef("unexpected argument %q", args[1])
		case space != 0 && space < 1<<20:
			return usagef("-space is %d, allowed is 1MiB or more", space)
		case o.Time <= 0 || o.Time > time.Hour:
			return usagef("-time is %v, allowed is more than 0, up to 1h", o.Time)
		}
		o.Space = int64(space)
		ctx, stop := interruptible()
		defer stop()
		r, err := probe.Run(ctx, args[0], o)
		if err != nil {
			return err
		}
		advice := r.Advise()
		if *asJSON {
			err = printJSON(c.stdout, probeObject(&r, &advice))
		} else {
			_, err = io.WriteString(c.stdout, probeText(&r, &advice))
		}
		if err == nil && r.Files != nil {
			err = errSaid
		}
		return err
	}
}

// probeText is the report for people.
func probeText(r *probe.Report, a *probe.Advice) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	line("folder", "%s, %v%s", appendPlain(nil, r.Dir), r.Perm, ifSet(", owner ", r.Owner))
	if m := r.Mount; m.Type != "" {
		line("file system", "%s on %s (%s, %s)", m.Type, m.Point, m.Source, m.Options)
	}
	if s := r.Space; s.Known {
		files := "files: as many as there is space for"
		if s.TotalIDs > 0 {
			files = fmt.Sprintf("%s of %s files free", count(int(s.FreeIDs)), count(int(s.TotalIDs)))
		}
		line("space", "%s of %s free, %s", byteCount(s.Free), byteCount(s.Total), files)
	}
	if r.Limit > 0 {
		line("longest file", "%s (ulimit -f)", byteCount(r.Limit))
	}
	if r.Files != nil {
		line("new files", "no: %v", r.Files)
	} else {
		line("new files", "yes%s", ifSet(", as user ", r.User))
		line("direct", "%s", withAlign(r))
		line("uncached", "%s", yesNo(r.Uncached))
		line("allocate ahead", "%s", yesNo(r.Allocate))
	}
	_ = w.Flush()
	if len(r.Writes) > 0 {
		b.WriteString("\n" + writesTable(r))
	}
	if r.Cut {
		b.WriteString("Not all was measured: the time or the space was not enough, or the probe was interrupted.\n")
	}
	b.WriteString("\nAdvice\n")
	if a.Mode != "" {
		fmt.Fprintf(&b, "  %s writes", a.Mode)
		if a.Chunk > 0 {
			fmt.Fprintf(&b, ", in chunks of %s", binarySize(a.Chunk))
		}
		b.WriteString("\n")
	}
	for _, n := range a.Notes {
		fmt.Fprintf(&b, "  %s\n", n)
	}
	return b.String()
}

func writesTable(r *probe.Report) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "writes\tchunk\tmedian\tp90\tmax\tMB/s\twith fsync: median\tmax\t")
	for _, s := range r.Writes {
		fmt.Fprintf(w, "%s\t%s\t%v\t%v\t%v\t%.0f\t%v\t%v\t\n", s.Mode, binarySize(s.Chunk), roundMicro(s.Plain.Median), roundMicro(s.Plain.P90),
			roundMicro(s.Plain.Max), s.BytesPerSec/1e6, roundMicro(s.Synced.Median), roundMicro(s.Synced.Max))
	}
	_ = w.Flush()
	return b.String()
}

// roundMicro keeps three digits of short times, too.
func roundMicro(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(time.Microsecond)
	}
	return d.Round(100 * time.Microsecond)
}

// binarySize writes n, a multiple of 1 KiB.
func binarySize(n int) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

func ifSet(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

func yesNo(s probe.Support) string {
	if s.OK {
		return "yes"
	}
	return "no: " + s.Why
}

func withAlign(r *probe.Report) string {
	if !r.Direct.OK {
		return yesNo(r.Direct)
	}
	told := ""
	if !r.Align.Told {
		told = " (the system does not tell; this worked)"
	}
	return fmt.Sprintf("yes, memory aligned to %d bytes, offsets and lengths to %d%s", r.Align.Memory, r.Align.Offset, told)
}

// probeJSON is what -json prints. Units are in the names.
type probeJSON struct {
	Dir      string `json:"dir"`
	Mode     string `json:"mode"`
	Owner    string `json:"owner,omitempty"`
	User     string `json:"user,omitempty"`
	FSType   string `json:"file_system,omitempty"`
	Source   string `json:"source,omitempty"`
	Point    string `json:"mount_point,omitempty"`
	Options  string `json:"mount_options,omitempty"`
	ReadOnly bool   `json:"read_only"`

	Free       *int64 `json:"free_bytes,omitempty"`
	Total      *int64 `json:"total_bytes,omitempty"`
	FreeFiles  *int64 `json:"free_files,omitempty"`
	TotalFiles *int64 `json:"total_files,omitempty"`
	Limit      int64  `json:"longest_file_bytes,omitempty"`

	Writable bool        `json:"writable"`
	Why      string      `json:"why,omitempty"`
	Direct   supportJSON `json:"direct"`
	Memory   int         `json:"direct_memory_bytes,omitempty"`
	Offset   int         `json:"direct_offset_bytes,omitempty"`
	Uncached supportJSON `json:"uncached"`
	Allocate supportJSON `json:"allocate"`

	Writes []writesJSON `json:"writes"`
	Cut    bool         `json:"cut"`
	Advice adviceJSON   `json:"advice"`
}

type supportJSON struct {
	OK  bool   `json:"ok"`
	Why string `json:"why,omitempty"`
}

type writesJSON struct {
	Mode   probe.Mode  `json:"mode"`
	Chunk  int         `json:"chunk_bytes"`
	Rate   float64     `json:"bytes_per_second"`
	Plain  latencyJSON `json:"write"`
	Synced latencyJSON `json:"write_and_fsync"`
	Error  string      `json:"error,omitempty"`
}

type latencyJSON struct {
	Calls  int           `json:"calls"`
	Median time.Duration `json:"median_ns"`
	P90    time.Duration `json:"p90_ns"`
	Max    time.Duration `json:"max_ns"`
}

type adviceJSON struct {
	Mode  probe.Mode `json:"mode,omitempty"`
	Chunk int        `json:"chunk_bytes,omitempty"`
	Notes []string   `json:"notes"`
}

func probeObject(r *probe.Report, a *probe.Advice) probeJSON {
	j := probeJSON{
		Dir: r.Dir, Mode: r.Perm.String(), Owner: r.Owner, User: r.User,
		FSType: r.Mount.Type, Source: r.Mount.Source, Point: r.Mount.Point, Options: r.Mount.Options, ReadOnly: r.Mount.ReadOnly,
		Limit: r.Limit, Writable: r.Files == nil,
		Direct: supportJSON(r.Direct), Memory: r.Align.Memory, Offset: r.Align.Offset,
		Uncached: supportJSON(r.Uncached), Allocate: supportJSON(r.Allocate),
		Writes: []writesJSON{}, Cut: r.Cut,
		Advice: adviceJSON{Mode: a.Mode, Chunk: a.Chunk, Notes: append([]string{}, a.Notes...)},
	}
	if r.Files != nil {
		j.Why = r.Files.Error()
	}
	if s := r.Space; s.Known {
		j.Free, j.Total, j.FreeFiles, j.TotalFiles = &s.Free, &s.Total, &s.FreeIDs, &s.TotalIDs
	}
	for _, w := range r.Writes {
		one := writesJSON{Mode: w.Mode, Chunk: w.Chunk, Rate: w.BytesPerSec, Plain: latencyJSON(w.Plain), Synced: latencyJSON(w.Synced)}
		if w.Err != nil {
			one.Error = w.Err.Error()
		}
		j.Writes = append(j.Writes, one)
	}
	return j
}
