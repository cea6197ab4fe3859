package main

import (
	"flag"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/internal/probe"
)

var probeCommand = &command{
	name:    "probe",
	summary: "check a folder's disk as a place for logs",
	args:    "DIR",
	needs:   "DIR",
	most:    1,
	help: `
Checks whether log files in DIR can be created, renamed and removed, whether
direct writes (O_DIRECT), uncached writes (RWF_DONTCACHE) and blocks allocated
ahead work, and how much space and how many inodes are free. It measures writes
of several sizes in each mode, without and with an fsync after each. It advises
the mode that disturbs other programs least, and the smallest size that reaches
nine tenths of the best rate.

Buffered and uncached writes go to memory first: the disk's share shows in the
writes with an fsync, and in the longest ones. On a busy disk the figures are
those of a busy disk.

probe writes one file of at most a quarter of the free space and removes it.
Where the system allows, the file has no name: a killed probe leaves nothing.
The exit status is 1 if no file can be written in DIR.

Examples:
  rollway probe /var/log/payment -space 256MiB -time 20s
  rollway probe /var/log/payment -o json | jq .advice
`,
	setup: setupProbe,
}

func setupProbe(flags *flag.FlagSet) action {
	var o probe.Options
	sizeFlag(flags, &o.Space, "space", "largest `SIZE` of the file (default 64MiB)")
	flags.DurationVar(&o.Time, "time", 6*time.Second, "longest `TIME` to measure")
	return func(c *call, args []string) error {
		switch {
		case o.Space != 0 && o.Space < 1<<20:
			return usagef("-space is %d, allowed is 1MiB or more", o.Space)
		case o.Time <= 0 || o.Time > time.Hour:
			return usagef("-time is %v, allowed is more than 0, up to 1h", o.Time)
		}
		ctx, stop := interruptible()
		defer stop()
		r, err := probe.Run(ctx, args[0], o)
		if err != nil {
			return err
		}
		err = c.show(r, probeText(&r))
		if err == nil && !r.Files.OK {
			err = errSaid
		}
		return err
	}
}

func probeText(r *probe.Report) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	line("folder", "%s, %v%s", appendPlain(nil, r.Dir), r.Perm, ifSet(", owner ", r.Owner))
	if m := r.Mount; m.Type != "" {
		line("file system", "%s on %s (%s, %s)", m.Type, m.Point, m.Source, m.Options)
	}
	if s := r.Space; s != nil {
		files := "files: as many as there is space for"
		if s.TotalIDs > 0 {
			files = fmt.Sprintf("%s of %s files free", count(int(s.FreeIDs)), count(int(s.TotalIDs)))
		}
		line("space", "%s of %s free, %s", byteCount(s.Free), byteCount(s.Total), files)
	}
	if r.Limit > 0 {
		line("longest file", "%s (ulimit -f)", byteCount(r.Limit))
	}
	if !r.Files.OK {
		line("new files", "no: %s", r.Files.Why)
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
		b.WriteString("Not everything was measured: time or space ran out, or the probe was interrupted.\n")
	}
	b.WriteString("\nAdvice\n")
	a := &r.Advice
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
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.0f\t%s\t%s\t\n", s.Mode, binarySize(s.Chunk), shortTime(s.Plain.Median), shortTime(s.Plain.P90),
			shortTime(s.Plain.Max), s.BytesPerSec/1e6, shortTime(s.Synced.Median), shortTime(s.Synced.Max))
	}
	_ = w.Flush()
	return b.String()
}

// binarySize writes n, a multiple of 1 KiB.
func binarySize(n int) string {
	size := config.Size(n).String()
	return size[:len(size)-3] + " " + size[len(size)-3:]
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
