package relay

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/bench/internal/measure"
)

// Settings say what is measured and how much.
type Settings struct {
	Groups []string // default all
	Rounds int      // 0: as many as each group has by default
	Relays []string // only these contenders, for tests; default all
	Short  bool     // every measurement once, with little
}

// A group is measured in interleaved rounds of its own.
type group struct {
	name   string
	rounds int
	plan   func(s Settings, all []contender) []subject
}

// A subject is one measurement of one contender.
type subject struct {
	where, who, mode string
	take             func(r *rig) (measure.Sample, error)
}

// Modes: over what the bytes go.
const (
	modeRaw = "sockets"
	modeTLS = "sockets, TLS"
)

func socketMode(tls bool) string {
	if tls {
		return modeTLS
	}
	return modeRaw
}

// Groups lists the names of what can be measured, in order.
func Groups() []string {
	var names []string
	for _, g := range groups() {
		names = append(names, g.name)
	}
	return names
}

func groups() []group {
	return []group{
		{"memory", 3, memorySubjects},
		{"raw", 5, func(s Settings, all []contender) []subject { return bulkSubjects(s, false, all) }},
		{"tls", 5, func(s Settings, all []contender) []subject { return bulkSubjects(s, true, all) }},
		{"small", 7, func(s Settings, all []contender) []subject { return transferSubjects(published(s), all) }},
		{"latency", 5, latencySubjects},
		{"idle", 1, idleSubjects},
	}
}

// Run measures and adds to the results, in which the chosen groups' earlier
// samples are replaced; progress goes to w.
func Run(w io.Writer, results *Results, s Settings) error {
	if child.Missing != "" {
		return errors.New("this needs " + child.Missing)
	}
	dir, err := os.MkdirTemp("", "bench-relay-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	all, err := present(w, results, s.Relays)
	if err != nil {
		return err
	}
	r, err := newRig(dir)
	if err != nil {
		return err
	}
	if s.Short {
		r.settle = 10 * time.Millisecond
	}
	err = r.run(w, results, s, all)
	if err2 := r.upstream.Stop(); err2 != nil {
		err = errors.Join(err, err2)
	}
	return err
}

func (r *rig) run(w io.Writer, results *Results, s Settings, all []contender) error {
	for _, g := range groups() {
		if len(s.Groups) > 0 && !slices.Contains(s.Groups, g.name) {
			continue
		}
		rounds := g.rounds
		if s.Rounds > 0 {
			rounds = s.Rounds
		}
		if s.Short {
			rounds = 1
		}
		fmt.Fprintln(w, g.name)
		begin := time.Now()
		subjects := g.plan(s, all)
		samples, err := measure.Interleave(w, rounds, len(subjects), func(i int) (measure.Sample, error) {
			su := subjects[i]
			sample, err := su.take(r)
			if err != nil {
				return sample, fmt.Errorf("%s, %s, %s: %w", su.where, su.who, su.mode, err)
			}
			sample.Case, sample.Library, sample.Mode = su.where, su.who, su.mode
			return sample, nil
		})
		if err != nil {
			return err
		}
		results.replace(g.name, rounds, time.Since(begin), samples)
	}
	return nil
}

// present leaves out contenders that are not asked for, and those that this
// machine does not have, with a message.
func present(w io.Writer, results *Results, only []string) ([]contender, error) {
	var all []contender
	for _, c := range contenders() {
		lacks := c.lacks()
		switch {
		case len(only) > 0 && !slices.Contains(only, c.name):
		case lacks == "":
			all = append(all, c)
		case os.Getenv("REQUIRE") == "all":
			return nil, fmt.Errorf("REQUIRE=all, but %s needs %s", c.name, lacks)
		default:
			fmt.Fprintf(w, "NOT MEASURED: %s needs %s\n", c.name, lacks)
			results.Missing[c.name] = lacks
		}
	}
	return all, nil
}

// peers leaves out the relays that only the published benchmark needs.
func peers(all []contender) []contender {
	return slices.DeleteFunc(slices.Clone(all), func(c contender) bool {
		return c.name == stackName || c.name == poolName(8)
	})
}

// size is n, or little for a short run.
func (s Settings) size(n, short int) int {
	if s.Short {
		return short
	}
	return n
}

// bulk is for all contenders.
func bulk(s Settings, tls bool) []transfer {
	length := s.size(1<<30, 4<<20)
	if tls {
		length = s.size(512<<20, 2<<20)
	}
	return []transfer{
		{name: "upload", tls: tls, chunk: burst, length: length, conns: 1},
		{name: "download", tls: tls, download: true, chunk: burst, length: length, conns: 1},
	}
}

// goPeers are the rivals in Go of a relay with TLS.
var goPeers = []string{Splice, poolName(4), poolName(16), poolName(64)}

// bulkSubjects has three times a round the contenders that a target compares to
// a few percent: two processes of the same relay differ by more than that.
func bulkSubjects(s Settings, tls bool, all []contender) []subject {
	subjects := transferSubjects(bulk(s, tls), all)
	near := slices.DeleteFunc(slices.Clone(all), func(c contender) bool {
		return c.name != Ours && c.name != Splice && !(tls && slices.Contains(goPeers, c.name))
	})
	for range s.size(2, 0) {
		subjects = append(subjects, transferSubjects(bulk(s, tls), near)...)
	}
	return subjects
}

// published are the other tests of the published benchmark, on sockets.
func published(s Settings) []transfer {
	var all []transfer
	for _, tls := range []bool{false, true} {
		packets, messages := s.size(64<<20, 1<<20), s.size(100_000, 500)*message
		all = append(all,
			transfer{name: "upload, 1,460-byte writes", tls: tls, chunk: mtu, length: packets, conns: 1},
			transfer{name: "download, 1,460-byte writes", tls: tls, download: true, chunk: mtu, length: packets, conns: 1},
			transfer{name: "small messages up", tls: tls, chunk: message, length: messages, conns: 1},
			transfer{name: "small messages down", tls: tls, download: true, chunk: message, length: messages, conns: 1},
			transfer{name: "10 MB upload", tls: tls, chunk: burst, length: 10 << 20, conns: s.size(10, 1)},
		)
	}
	return all
}

func transferSubjects(transfers []transfer, all []contender) []subject {
	var subjects []subject
	for _, t := range transfers {
		for _, c := range all {
			if t.tls && c.tls || !t.tls && c.plain {
				subjects = append(subjects, subject{t.name, c.name, socketMode(t.tls), func(r *rig) (measure.Sample, error) { return t.take(r, c) }})
			}
		}
	}
	return subjects
}

// onSockets makes a measurement of each contender, plain and with TLS where it can.
func onSockets(where string, all []contender, take func(r *rig, c contender, tls bool) (measure.Sample, error)) []subject {
	var subjects []subject
	for _, tls := range []bool{false, true} {
		for _, c := range all {
			if tls && c.tls || !tls && c.plain {
				subjects = append(subjects, subject{where, c.name, socketMode(tls), func(r *rig) (measure.Sample, error) { return take(r, c, tls) }})
			}
		}
	}
	return subjects
}

// memorySubjects looks into relays in Go, as the published measurement did.
func memorySubjects(s Settings, all []contender) []subject {
	idle, burst := s.size(2000, 20), s.size(500, 10)
	measured := slices.DeleteFunc(slices.Clone(all), func(c contender) bool {
		return !slices.Contains([]string{stackName, poolName(16), poolName(4), Ours}, c.name)
	})
	return append(
		onSockets("idle in Go", measured, func(r *rig, c contender, tls bool) (measure.Sample, error) { return idleInGo{tls, idle}.take(r, c) }),
		onSockets("after a burst", measured, func(r *rig, c contender, tls bool) (measure.Sample, error) { return afterBurst{tls, burst}.take(r, c) })...)
}

func latencySubjects(s Settings, all []contender) []subject {
	n := s.size(10_000, 50)
	return onSockets("ping-pong of 200 bytes", append([]contender{{name: direct, plain: true, tls: true}}, peers(all)...),
		func(r *rig, c contender, tls bool) (measure.Sample, error) { return pingPongs{tls, n}.take(r, c) })
}

// idleConns is how many connections fit under a limit of 20,000 descriptors if
// each takes two.
const idleConns = 9900

func idleSubjects(s Settings, all []contender) []subject {
	n := s.size(idleConns, 20)
	return onSockets("idle connections", peers(all), func(r *rig, c contender, tls bool) (measure.Sample, error) { return idleness{tls, n}.take(r, c) })
}
