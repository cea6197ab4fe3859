package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/internal/probe"
)

var doctorCommand = &command{
	name:    "doctor",
	summary: "check a machine as a place for a collector, or a folder for logs",
	args:    "[DIR]",
	most:    1,
	help: `
Checks what a collector needs of its machine: configuration, secrets and
certificate, the data folder and its disk, ports, limits, memory, clock, and the
collector itself if it runs. Each finding is ok, a warning or a problem, and
says what to do next. The configuration is -config, or /etc/rollway/rollway.yaml
if that exists. A running collector's counts need ROLLWAY_TOKEN, a token that
may read. Run it as the collector's user, or as root to see more.

With DIR it checks that folder alone, as a place for log files: which ways of
writing work, and how long writes of several sizes take, without and with an
fsync after each. It advises the mode that disturbs other programs least, and
the smallest size that reaches nine tenths of the best rate.

It writes one file of at most a quarter of the free space and removes it. Where
the system allows, the file has no name: a killed doctor leaves nothing.
The exit status is 1 if there is a problem.

Examples:
  rollway doctor -config /etc/rollway/rollway.yaml
  rollway doctor /var/log/payment -space 256MiB -time 20s
  rollway doctor -o json | jq '.findings[] | select(.level != "ok")'
`,
	setup: setupDoctor,
}

// A finding is what a check says.
type finding struct {
	Check string `json:"check"`
	Level string `json:"level"`
	Found string `json:"found"`
	Next  string `json:"next,omitempty"` // what to do; "": nothing
}

// Levels of findings.
const (
	levelOK      = "ok"
	levelWarning = "warning"
	levelProblem = "problem"
)

func ok(format string, args ...any) []finding {
	return []finding{{Level: levelOK, Found: fmt.Sprintf(format, args...)}}
}

func warning(next, format string, args ...any) []finding {
	return []finding{{Level: levelWarning, Found: fmt.Sprintf(format, args...), Next: next}}
}

func problem(next, format string, args ...any) []finding {
	return []finding{{Level: levelProblem, Found: fmt.Sprintf(format, args...), Next: next}}
}

// A patient is what doctor checks.
type patient struct {
	call   *call
	ctx    context.Context
	path   string // of the configuration; "": the defaults
	cfg    config.Config
	folder *probe.Report // of DIR or the data folder; nil: it is not there
	cert   *x509.Certificate
	client *client // of the collector
	asked  error   // what became of asking /readyz; nil: it is ready
	pid    int     // of the process that listens at its port; 0: unknown or none
}

// doctorChecks are made in this order. Those of a folder are all that DIR gets.
var doctorChecks = []struct {
	name   string
	folder bool
	look   func(p *patient) []finding
}{
	{"configuration", false, (*patient).configuration},
	{"secrets", false, (*patient).secrets},
	{"access", false, (*patient).access},
	{"certificate", false, (*patient).certificate},
	{"folder", true, (*patient).place},
	{"owner", false, (*patient).owner},
	{"retention", false, (*patient).retention},
	{"writing", true, (*patient).writing},
	{"collector", false, (*patient).collector},
	{"ports", false, (*patient).ports},
	{"ledger", false, (*patient).ledger},
	{"open files", false, (*patient).openFiles},
	{"memory", false, (*patient).memory},
	{"clock", false, (*patient).clock},
	{"time service", false, (*patient).timeService},
}

func setupDoctor(flags *flag.FlagSet) action {
	var o probe.Options
	p := &patient{cfg: config.Default()}
	flags.StringVar(&p.path, "config", "", "the collector's configuration `FILE`")
	sizeFlag(flags, &o.Space, "space", "largest `SIZE` of the file that is written (default 64MiB)")
	flags.DurationVar(&o.Time, "time", 6*time.Second, "longest `TIME` to measure")
	return func(c *call, args []string) error {
		switch {
		case o.Space != 0 && o.Space < 1<<20:
			return usagef("-space is %d, allowed is 1MiB or more", o.Space)
		case o.Time <= 0 || o.Time > time.Hour:
			return usagef("-time is %v, allowed is more than 0, up to 1h", o.Time)
		case len(args) > 0 && p.path != "":
			return usagef("-config and DIR exclude each other")
		}
		ctx, stop := interruptible()
		defer stop()
		p.call, p.ctx = c, ctx
		found, err := p.examine(args, o)
		if err != nil {
			return err
		}
		err = c.show(struct {
			Findings []finding     `json:"findings"`
			Folder   *probe.Report `json:"folder,omitempty"`
		}{found, p.folder}, p.text(found))
		if err == nil && slices.ContainsFunc(found, func(f finding) bool { return f.Level == levelProblem }) {
			err = errSaid
		}
		return err
	}
}

// examine makes the checks, those of a folder alone if args has one.
func (p *patient) examine(args []string, o probe.Options) (found []finding, err error) {
	dir := ""
	if len(args) > 0 {
		dir = args[0]
	} else if err := p.read(); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			found = append(found, problem("correct it: 'rollway check -example' explains all settings", "%s", line)...)
			found[len(found)-1].Check = doctorChecks[0].name
		}
		return found, nil
	} else if exists(p.cfg.Data) {
		dir = p.cfg.Data
	}
	if dir != "" {
		report, err := probe.Run(p.ctx, dir, o)
		if err != nil {
			return nil, err
		}
		p.folder = &report
	}
	for _, c := range doctorChecks {
		if len(args) > 0 && !c.folder {
			continue
		}
		for _, f := range c.look(p) {
			f.Check = c.name
			found = append(found, f)
		}
	}
	return found, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// read reads the configuration and asks the collector whether it is ready. It trusts the
// configured certificate itself, so its authority does not matter.
func (p *patient) read() (err error) {
	if p.path == "" && exists(packageDir+"/rollway.yaml") {
		p.path = packageDir + "/rollway.yaml"
	}
	if p.path != "" {
		if p.cfg, err = config.Load(p.path); err != nil {
			return err
		}
	}
	at, err := net.ResolveTCPAddr("tcp", p.cfg.Listen)
	if err != nil {
		return err
	}
	scheme := "http"
	if p.cfg.TLS.Cert != "" {
		scheme = "https"
	}
	if p.client, err = newClient(scheme + "://" + dialable(at)); err != nil {
		return err
	}
	if text, err := os.ReadFile(p.cfg.TLS.Cert); err == nil {
		if block, _ := pem.Decode(text); block != nil {
			p.cert, _ = x509.ParseCertificate(block.Bytes) // configuration says what is wrong
		}
	}
	if p.cert != nil {
		trust := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), ServerName: namesOf(p.cert)[0]}
		trust.RootCAs.AddCert(p.cert)
		p.client.http.Transport.(*http.Transport).TLSClientConfig = trust
	}
	p.pid = listenerOf("tcp", at.Port)
	resp, err := p.client.get(p.ctx, "/readyz", nil, nil)
	if p.asked = err; err == nil {
		resp.Body.Close()
	}
	return nil
}

// namesOf returns for whom a certificate is: what clients compare, or else its subject.
func namesOf(cert *x509.Certificate) []string {
	names := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		names = []string{cert.Subject.CommonName}
	}
	return names
}

// text lists findings for people, after what was measured of DIR.
func (p *patient) text(found []finding) string {
	var b strings.Builder
	if r := p.folder; r != nil && p.client == nil && len(r.Writes) > 0 {
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(w, "writes\tchunk\tmedian\tp90\tmax\tMB/s\twith fsync: median\tmax\t")
		for _, s := range r.Writes {
			fmt.Fprintf(w, "%s\t%v\t%s\t%s\t%s\t%.0f\t%s\t%s\t\n", s.Mode, config.Size(s.Chunk), shortTime(s.Plain.Median), shortTime(s.Plain.P90),
				shortTime(s.Plain.Max), s.BytesPerSec/1e6, shortTime(s.Synced.Median), shortTime(s.Synced.Max))
		}
		_ = w.Flush()
		b.WriteString("\n")
	}
	n := map[string]int{}
	for _, f := range found {
		n[f.Level]++
		fmt.Fprintf(&b, "%-8s %-14s %s\n", f.Level, f.Check, appendPlain(nil, f.Found))
		if f.Next != "" {
			fmt.Fprintf(&b, "%23s → %s\n", "", appendPlain(nil, f.Next))
		}
	}
	fmt.Fprintf(&b, "\n%d ok, %s, %s\n", n[levelOK], plural(n[levelWarning], levelWarning), plural(n[levelProblem], levelProblem))
	return b.String()
}
