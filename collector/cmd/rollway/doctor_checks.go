package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rollway/rollway/collector"
	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/internal/recordlog"
)

func (p *patient) configuration() []finding {
	if err := collector.CheckFiles(p.cfg); err != nil {
		return problem("correct it, and run 'rollway check -config "+p.path+"'", "%v", err)
	}
	return ok("%s", cmp.Or(p.path, "no file: the defaults"))
}

// secrets looks at who can read or change what others must not.
func (p *patient) secrets() (found []finding) {
	for _, text := range collector.FileWarnings(p.cfg) {
		said, next, _ := strings.Cut(text, ": chmod ")
		found = append(found, problem("chmod "+next, "%s", said)...)
	}
	if found == nil {
		return ok("no other user of this machine can read or change them")
	}
	return found
}

// An address is one where a configured collector listens.
type address struct {
	key, network, addr string
	guarded            bool // by a token, a key or certificates of clients
	tls                bool
}

func (p *patient) addresses() (list []address) {
	c := &p.cfg
	mutual := c.TLS.ClientCA != ""
	for _, a := range []address{{key: "listen", addr: c.Listen}, {key: "listen_grpc", addr: c.AddrGRPC()}} {
		if a.network, a.guarded, a.tls = "tcp", c.Access.Tokens != "" || mutual, c.TLS.Cert != ""; a.addr != "" {
			list = append(list, a)
		}
	}
	for _, s := range [][2]string{{"listen_tcp", c.ListenTCP}, {"listen_syslog", c.ListenSyslog}, {"listen_gelf", c.ListenGELF},
		{"listen_lumberjack", c.ListenLumberjack}, {"listen_forward", c.ListenForward}} {
		parsed, _ := config.ParseAddrs(s[1], "tcp", "tls", "udp") // they were checked
		for _, a := range parsed {
			by := address{s[0], "tcp", a.Host, s[0] == "listen_forward" && c.Forward.SharedKeyFile != "", a.Network == "tls"}
			if by.guarded = by.guarded || by.tls && mutual; a.Network == "udp" {
				by.network = "udp"
			}
			list = append(list, by)
		}
	}
	return list
}

// access looks at what the network may do.
func (p *patient) access() (found []finding) {
	for _, a := range p.addresses() {
		at, err := net.ResolveTCPAddr("tcp", a.addr)
		switch {
		case err != nil || at.IP.IsLoopback():
		case !a.guarded && a.key == "listen":
			found = append(found, problem("set access.tokens ('rollway init' makes some), or listen on 127.0.0.1", "anybody who reaches %s can write logs, and read all of them", a.addr)...)
		case !a.guarded:
			found = append(found, warning("set tls.client_ca and use tls://, or listen on 127.0.0.1", "anybody who reaches %s (%s) can write logs", a.addr, a.key)...)
		case !a.tls:
			found = append(found, warning("use TLS here, or let a proxy in front do it", "tokens and logs can be read on their way to %s (%s)", a.addr, a.key)...)
		}
	}
	if found == nil {
		return ok("only who has a token, a certificate or an account on this machine reaches the logs")
	}
	return found
}

func (p *patient) certificate() []finding {
	const early = 30 * 24 * time.Hour
	if p.cert == nil {
		return nil
	}
	until, next := p.cert.NotAfter.Format(time.DateOnly), "renew it ('rollway init -renew', if init made it), and send SIGHUP"
	switch left := time.Until(p.cert.NotAfter); {
	case left <= 0:
		return problem(next, "%s has expired on %s", p.cfg.TLS.Cert, until)
	case left < early:
		return warning(next, "%s expires on %s", p.cfg.TLS.Cert, until)
	}
	return ok("valid until %s, for %s", until, strings.Join(namesOf(p.cert), " "))
}

// place is the folder and its file system.
func (p *patient) place() []finding {
	r := p.folder
	switch {
	case r == nil:
		return warning("'rollway serve' makes it, if its user may", "%s does not exist yet", p.cfg.Data)
	case r.Perm&0o002 != 0:
		return problem("chmod o-w "+r.Dir, "everybody on this machine may write to %s (%v)", r.Dir, r.Perm)
	}
	found := ok("%s, %v, owner %s, seen as user %s", r.Dir, r.Perm, cmp.Or(r.Owner, "unknown"), cmp.Or(r.User, "unknown"))
	if m := r.Mount; m.Type != "" {
		found = append(found, ok("%s on %s (%s, %s)", m.Type, m.Point, m.Source, m.Options)...)
	}
	if s := r.Space; s != nil {
		found = append(found, ok("%s of %s free, %s of %s files free", byteCount(s.Free), byteCount(s.Total), count(int(s.FreeIDs)), count(int(s.TotalIDs)))...)
	}
	return found
}

// owner looks for files of somebody else, as a start as root leaves them: the collector
// cannot open them.
func (p *patient) owner() []finding {
	want, known := ownerOf(p.cfg.Data)
	for _, f := range p.files() {
		if uid, seen := ownerOf(f); known && seen && uid != want {
			return problem(fmt.Sprintf("stop the collector, and chown -R --reference=%s %s", p.cfg.Data, p.cfg.Data), "%s is of user %d, and the folder of %d", f, uid, want)
		}
	}
	return nil
}

// files returns those of the journal.
func (p *patient) files() []string {
	list, _ := filepath.Glob(filepath.Join(collector.JournalFolder(p.cfg.Data), "*")) // the pattern is valid
	return list
}

// retention compares the room with what is to be kept.
func (p *patient) retention() []finding {
	j := p.cfg.Journal
	keep := cmp.Or(j.RetainSize, j.MaxSize)
	switch {
	case keep == 0 && j.RetainAge == 0:
		return warning("set journal.retain_size or journal.retain_age", "lines are kept until the disk is full, and then refused")
	case keep == 0:
		return ok("lines are kept for %v, whatever room they take", j.RetainAge)
	case p.folder == nil || p.folder.Space == nil:
		return nil
	}
	used := int64(0)
	for _, f := range p.files() {
		if info, err := os.Stat(f); err == nil {
			used += info.Size()
		}
	}
	room := config.Size(p.folder.Space.Free + used)
	most := keep + 2*j.SegmentSize // one is written and one packed before the oldest is removed
	if room < most {
		return problem(fmt.Sprintf("set journal.retain_size to %v or less, or make room", max(room-2*j.SegmentSize, 0)/config.MiB*config.MiB),
			"the journal may grow to %s, and there is room for %s", byteCount(int64(most)), byteCount(int64(room)))
	}
	return ok("the journal has %s of at most %s, and there is room", byteCount(used), byteCount(int64(most)))
}

// writing tells which ways of writing work, and what the measurements mean.
func (p *patient) writing() (found []finding) {
	r := p.folder
	if r == nil {
		return nil
	}
	a := &r.Advice
	if r.Files.OK {
		direct := yesNo(r.Direct.OK, r.Direct.Why)
		if r.Direct.OK {
			direct = fmt.Sprintf("yes, memory aligned to %d bytes, offsets and lengths to %d", r.Align.Memory, r.Align.Offset)
		}
		found = ok("direct: %s; uncached: %s; allocated ahead: %s", direct, yesNo(r.Uncached.OK, r.Uncached.Why), yesNo(r.Allocate.OK, r.Allocate.Why))
	}
	for _, w := range r.Writes {
		if w.Mode == a.Mode && w.Chunk == a.Chunk && w.Err == "" {
			found = append(found, ok("best are %s writes of %v: %s, %s with an fsync", w.Mode, config.Size(w.Chunk), shortTime(w.Plain.Median), shortTime(w.Synced.Median))...)
		}
	}
	for _, n := range a.Notes {
		says := warning
		if !r.Files.OK {
			says = problem
		}
		found = append(found, says(n.Next, "%s", n.Found)...)
	}
	return found
}

func yesNo(yes bool, why string) string {
	if yes {
		return "yes"
	}
	return "no: " + why
}

// collector is whether one runs, and whether it is ready.
func (p *patient) collector() []finding {
	used, _ := recordlog.InUse(collector.JournalFolder(p.cfg.Data)) // no folder is not in use
	status, answered := errors.AsType[*statusError](p.asked)
	switch {
	case p.asked == nil && !used:
		return problem("compare data with the flags that it was started with", "the collector at %s does not use %s", p.client.base, p.cfg.Data)
	case p.asked == nil:
		return ok("ready at %s", p.client.base)
	case answered && status.code == http.StatusServiceUnavailable:
		return problem("do what it says; /metrics and the collector's log have more", "not ready: %s", status.message)
	case used && p.cfg.TLS.ClientCA != "":
		return warning("ask "+p.client.base+"/readyz with a certificate of a client", "it runs, and takes only clients with a certificate")
	case used:
		return problem("compare the configuration with what it was started with, or restart it", "a collector has %s open, and does not answer: %v", p.cfg.Data, p.asked)
	case errors.Is(p.asked, syscall.ECONNREFUSED):
		return warning("systemctl start rollway, or 'rollway serve'", "none runs at %s", p.client.base)
	}
	return problem("find out what listens there", "%v", p.asked)
}

// ports tries to listen at each address.
func (p *patient) ports() (found []finding) {
	for _, a := range p.addresses() {
		var l io.Closer
		var err error
		if a.network == "udp" {
			l, err = net.ListenPacket(a.network, a.addr)
		} else {
			l, err = net.Listen(a.network, a.addr)
		}
		if err == nil {
			l.Close()
			found = append(found, ok("%s %s (%s) is free", a.network, a.addr, a.key)...)
			continue
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			found = append(found, problem("choose another address; ports below 1024 need CAP_NET_BIND_SERVICE", "%s: %v", a.key, err)...)
			continue
		}
		_, number, _ := net.SplitHostPort(a.addr)
		port, _ := net.LookupPort(a.network, number)
		pid, holder := listenerOf(a.network, port), "a process that this user cannot see"
		if pid != 0 {
			holder = fmt.Sprintf("%s (process %d)", processName(pid), pid)
		}
		if p.asked == nil && pid == p.pid {
			found = append(found, ok("%s %s (%s) is the collector's: %s", a.network, a.addr, a.key, holder)...)
		} else {
			found = append(found, problem("stop it, or choose another address", "%s %s (%s) is in use by %s", a.network, a.addr, a.key, holder)...)
		}
	}
	return found
}

// ledger asks a running collector whether its counts agree.
func (p *patient) ledger() []finding {
	if p.asked != nil {
		return nil
	}
	var now struct {
		Journal collector.PipelineJournal
		Ledger  collector.PipelineLedger
	}
	switch err := p.client.getJSON(p.ctx, "/api/pipeline", &now); {
	case err != nil:
		return warning("set "+tokenEnv+" to a token that may read", "its counts cannot be read: %v", err)
	case !now.Ledger.Agrees:
		return problem("run 'rollway reconcile "+p.cfg.Data+"', and report it", "its counts do not agree")
	case now.Journal.Findings > 0:
		return problem("run 'rollway verify "+p.cfg.Data+"', and -acknowledge what you know", "the journal has %s", plural(now.Journal.Findings, "finding"))
	case now.Journal.LastError != "":
		return warning("look at the kernel's log", "the disk failed at %s: %s", now.Journal.LastErrorTime.Format(time.DateTime), now.Journal.LastError)
	}
	return ok("all counts agree, %s stored", lines(int(now.Journal.Next)))
}

func (p *patient) openFiles() []finding {
	const few = 4096
	switch n, of := openFiles(p.pid); {
	case n == 0:
		return nil
	case n < few:
		return warning("LimitNOFILE=65536 in the unit, or ulimit -n", "%s may have %s open, connections included", of, plural(n, "file"))
	default:
		return ok("%s may have %s open", of, plural(n, "file"))
	}
}

// memory compares what a collector may take with what there is.
func (p *patient) memory() []finding {
	planned := plannedMemory(int64(p.cfg.Limits.InFlight))
	need := planned + int64(p.cfg.Limits.QueryMemory)
	limit, err := cgroupMemory(os.DirFS("/"))
	total := totalMemory()
	switch {
	case err != nil:
		return warning("set GOMEMLIMIT", "the limit of the cgroup cannot be read: %v", err)
	case limit > 0 && planned > limit:
		return problem(fittingAdvice(limit), "the cgroup allows %s, and requests and the program may take %s", byteCount(limit), byteCount(planned))
	case total > 0 && need > total:
		return warning("lower limits.in_flight or limits.query_memory", "this machine has %s, and requests, queries and the program may take %s", byteCount(total), byteCount(need))
	}
	return ok("requests, queries and the program may take %s", byteCount(need))
}

// clock compares this machine's time with that of the newest line.
func (p *patient) clock() []finding {
	const slack = time.Minute // by which clocks of several machines may differ
	newest, err := p.newest()
	switch ahead := time.Until(newest); {
	case err != nil:
		return warning("set "+tokenEnv+" to a token that may read", "it cannot be compared with the newest line: %v", err)
	case newest.IsZero():
		return ok("%s; no line has come yet", time.Now().Format(time.DateTime))
	case ahead > slack:
		return warning("compare the clocks of this machine and of those who send", "the newest line is %s ahead of this machine's clock", shortTime(ahead))
	default:
		return ok("%s; the newest line is %s old", time.Now().Format(time.DateTime), shortTime(max(-ahead, 0)))
	}
}

// newest returns the time of the newest line, of a running collector or in the folder; zero:
// there is none.
func (p *patient) newest() (at time.Time, err error) {
	cl := p.client
	if p.asked != nil {
		if s, err := identify(p.cfg.Data); err != nil || s.journal == "" {
			return at, nil
		}
		var stop func()
		if cl, stop, err = p.call.asked("", p.cfg.Data); err != nil {
			return at, err
		}
		defer stop()
	}
	resp, err := cl.get(p.ctx, "/api/query", url.Values{"last": {"1"}}, nil)
	if err != nil {
		return at, err
	}
	defer resp.Body.Close()
	var line struct{ Time time.Time }
	if err = json.NewDecoder(resp.Body).Decode(&line); errors.Is(err, io.EOF) {
		err = nil // no line
	}
	return line.Time, err
}
