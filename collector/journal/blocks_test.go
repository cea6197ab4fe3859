package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/rollway/rollway/collector/columns"
	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

func TestTenantOf(t *testing.T) {
	for _, row := range []struct{ line, want string }{
		{`{"time":"x","msg":"m","attrs":{"tenant":"shop","a":1}}`, "shop"},
		{`{"attrs":{"tenant":"shop"}}`, "shop"},
		{`{"msg":"m","attrs":{"a":{"tenant":"b"},"tenant":"shop"}}`, "shop"},
		{`{"msg":"m","attrs":{"a":{"tenant":"b"}}}`, ""},
		{`{"msg":"m","error":{"x":1,"attrs":{"tenant":"b"}},"attrs":{"tenant":"shop"}}`, "shop"},
		{`{"msg":"m","error":{"x":1,"attrs":{"tenant":"b"}}}`, ""},
		{`{"msg":"m","error":[1,{"x":1,"attrs":{"tenant":"b"}}]}`, ""},
		{`{"msg":",\"attrs\":{\"tenant\":\"b\"","attrs":{"tenant":"shop"}}`, "shop"},
		{`{"msg":",\"attrs\":{\"tenant\":\"b\""}`, ""},
		{`{"msg":"a\":{","attrs":{"tenant":"shop"}}`, "shop"},
		{`{"msg":"m","attrs":{"ten\u0061nt":"shop"}}`, "shop"},
		{`{"msg":"m","attrs":{"tenant":"sh\"op\u0041"}}`, `sh"opA`},
		{`{"msg":"m","attrs":{"x\"tenant":"b","tenant":"shop"}}`, "shop"},
		{`{"msg":"m","attrs":{"tenant":["shop"]}}`, ""},
		{`{"msg":"m","attrs":{"tenant":5}}`, ""},
		{`{"msg":"m","attrs":{"tenant":"` + strings.Repeat("x", maxTenant) + `"}}`, strings.Repeat("x", maxTenant)},
		{`{"msg":"m","attrs":{"tenant":"` + strings.Repeat("x", maxTenant+1) + `"}}`, ""},
		{`{"msg":"m","tenant":"b"}`, ""},
		{`{"msg":"m","attrs":"tenant"}`, ""},
		{`{"msg":"m","attrs":{"tenant":"cut`, ""},
		{`no JSON "tenant":`, ""},
		{``, ""},
	} {
		if got := string(TenantOf([]byte(row.line + "\n"))); got != row.want {
			t.Errorf("%s: %q, want %q", row.line, got, row.want)
		}
	}
	TenantOf(nil)
}

// FuzzTenantOf compares TenantOf with encoding/json.
func FuzzTenantOf(f *testing.F) {
	f.Add(`"a":1`, `"tenant":"shop"`)
	f.Add(`"error":{"attrs":{"tenant":"b"}}`, `"x":{"tenant":"b"},"ten\u0061nt":"s\u0068op"`)
	f.Fuzz(func(t *testing.T, top, attrs string) {
		text := `{` + top + `,"attrs":{` + attrs + `}}`
		var compact bytes.Buffer
		var members map[string]json.RawMessage
		if json.Compact(&compact, []byte(text)) != nil || strings.Contains(text, `\ud`) || strings.Contains(text, `\uD`) || !utf8.ValidString(text) {
			return
		}
		if json.Unmarshal(compact.Bytes(), &members) != nil || bytes.Count(compact.Bytes(), []byte("ttrs")) != 1 || bytes.Count(compact.Bytes(), []byte("enant")) > 1 {
			return // a name twice
		}
		var of map[string]json.RawMessage
		want := ""
		if json.Unmarshal(members["attrs"], &of) == nil {
			if json.Unmarshal(of["tenant"], &want) != nil || len(want) > maxTenant {
				want = ""
			}
		}
		if got := string(TenantOf(compact.Bytes())); got != want {
			t.Errorf("%s: %q, want %q", compact.Bytes(), got, want)
		}
	})
}

// tenantLine is record n of a journal of several tenants.
func tenantLine(n int, tenant string, pad int) string {
	attrs := fmt.Sprintf(`,"attrs":{"tenant":%q,"n":%d}`, tenant, n)
	if tenant == "" {
		attrs = fmt.Sprintf(`,"attrs":{"n":%d}`, n)
	}
	return fmt.Sprintf(`{"time":"2026-05-28T12:40:%02d.000000000Z","level":"INFO","msg":"%s"%s}`+"\n", n/100%60, strings.Repeat("x", pad), attrs)
}

// mixed is a journal of tenants and what must be in it.
type mixed struct {
	t       *testing.T
	rng     *rand.Rand
	tenants []string
	model   []string        // lines by offset
	owner   []string        // tenants by offset
	gone    map[uint64]bool // deleted by retention
	unpack  Unpack          // of check's readers
	whole   bool            // they do not take what is packed ahead
}

// batch returns the next lines, of one tenant mostly.
func (m *mixed) batch() Batch {
	b := Batch{Records: 1 + m.rng.IntN(6), MaxTime: 1}
	if m.rng.IntN(20) == 0 {
		b.Records = 60 // in pieces
	}
	tenant := m.tenants[m.rng.IntN(len(m.tenants))]
	for range b.Records {
		if m.rng.IntN(4) == 0 {
			tenant = m.tenants[m.rng.IntN(len(m.tenants))]
		}
		line := tenantLine(len(m.model), tenant, m.rng.IntN(80))
		b.Lines = append(b.Lines, line...)
		m.model, m.owner = append(m.model, line), append(m.owner, tenant)
	}
	return b
}

func (m *mixed) fill(j *Journal, records int) {
	m.t.Helper()
	for len(m.model) < records {
		n := len(m.model)
		b := m.batch()
		if r, err := j.AppendKeyed(context.Background(), fmt.Sprint("key ", n), b); err != nil || r.First != uint64(n) {
			m.t.Fatalf("%+v, %v, want offset %d", r, err, n)
		}
	}
}

// check reads from an offset on, of one tenant or of all, and compares.
func (m *mixed) check(j *Journal, from uint64, tenant *string) {
	m.t.Helper()
	r := j.NewReader(from)
	defer r.Close()
	r.SetUnpack(m.unpack, !m.whole)
	if tenant != nil {
		r.SetTenant(*tenant)
	}
	seen := make(map[uint64]bool)
	for at := from; ; {
		f, ok, err := r.TryNext()
		var gap *Gap
		if errors.As(err, &gap) {
			for o := gap.From; o < gap.To; o++ {
				if !m.gone[o] || !gap.Retention && gap.To > j.First() {
					m.t.Fatalf("offset %d is missing: %v", o, gap)
				}
				seen[o] = true
			}
			at = gap.To
			continue
		}
		if err != nil {
			m.t.Fatal(err)
		}
		if !ok {
			break
		}
		if f.First < at {
			m.t.Fatalf("frame at %d after %d", f.First, at)
		}
		for line := range strings.Lines(string(f.Lines)) {
			if line != m.model[f.First] || m.gone[f.First] {
				m.t.Fatalf("offset %d is %q, want %q, deleted %v", f.First, line, m.model[f.First], m.gone[f.First])
			}
			seen[f.First] = true
			f.First++
			f.Records--
		}
		if at = f.First; f.Records != 0 {
			m.t.Fatalf("a frame at %d says %d records more", f.First, f.Records)
		}
	}
	if r.Offset() != uint64(len(m.model)) {
		m.t.Fatalf("the reader ends at %d of %d", r.Offset(), len(m.model))
	}
	for o := from; o < uint64(len(m.model)); o++ {
		if !seen[o] && (tenant == nil || m.owner[o] == *tenant) {
			m.t.Fatalf("offset %d of %q is neither read nor missing", o, m.owner[o])
		}
	}
}

func (m *mixed) checkAll(j *Journal) {
	m.t.Helper()
	m.check(j, 0, nil)
	for range 20 {
		from := uint64(m.rng.IntN(len(m.model)))
		m.check(j, from, nil)
		m.check(j, from, &m.tenants[m.rng.IntN(len(m.tenants))])
	}
	other := "nobody's"
	m.check(j, 0, &other)
}

// checkFolder compares what reads the folder without opening it.
func (m *mixed) checkFolder(mem *disktest.Mem) {
	m.t.Helper()
	rep, err := audit(mem, "/j", AuditOptions{})
	if err != nil || len(rep.Damage(0)) > 0 || rep.Records != int64(rep.Next-rep.First)-int64(rep.Deleted) || rep.Next != uint64(len(m.model)) || rep.Count(rep.First, rep.Next) != rep.Next-rep.First {
		m.t.Fatalf("%+v, %v", rep, err)
	}
	for _, s := range rep.List {
		if in, err := recordlog.Inspect(mem, "/j/"+s.File); err != nil || len(in.Findings) > 0 || in.Records != s.Records {
			m.t.Fatalf("%s: %+v, %v", s.File, in, err)
		}
	}
	n := int64(0)
	found, err := eachFrame(mem, "/j", 0, func(f Frame) error {
		for line := range strings.Lines(string(f.Lines)) {
			if line != m.model[f.First] || m.gone[f.First] {
				m.t.Fatalf("offset %d is %q", f.First, line)
			}
			f.First++
			n++
		}
		return nil
	})
	if err != nil || len(found) > 0 {
		m.t.Fatalf("EachFrame: %v, %v", found, err)
	}
	if n != rep.Records {
		m.t.Fatalf("EachFrame finds %d records, Audit %d", n, rep.Records)
	}
}

func newMixed(t *testing.T, seed uint64, tenants ...string) *mixed {
	return &mixed{t: t, rng: rand.New(rand.NewPCG(seed, 7)), tenants: tenants, gone: map[uint64]bool{}}
}

// Packed segments have a block for each tenant, and readers of all and of one tenant find
// what was stored, under its offsets.
func TestBlocksRead(t *testing.T) {
	for i, tenants := range [][]string{{""}, {"shop"}, {"shop", "bank"}, {"", "shop", "bank", "a\"b\\c", "zoo"}, strings.Split(strings.Repeat("t,", 40)+"u", ",")} {
		for n := range tenants {
			if len(tenants) > 40 {
				tenants[n] = fmt.Sprint("t", n)
			}
		}
		t.Run(fmt.Sprint(len(tenants), tenants[0]), func(t *testing.T) {
			m := newMixed(t, uint64(i), tenants...)
			mem := disktest.NewMem()
			j, err := Open("/j", Options{Disk: mem, SegmentBytes: 100_000, MaxGroupBytes: 3000, Pack: true})
			testkit.OK(t, err)
			m.fill(j, 4000)
			waitPacked(t, j)
			if st := j.Stats(); int(st.PackedSegments) != st.Segments-1 || st.Segments < 4 || st.LastError != nil {
				t.Fatalf("%+v", st)
			}
			m.checkAll(j)
			testkit.OK(t, j.Close())
			m.checkFolder(mem)
			j, err = Open("/j", Options{Disk: mem})
			testkit.OK(t, err)
			checkKinds(t, j, []FindingKind{})
			m.checkAll(j)
			testkit.OK(t, j.Close())
			m.checkBlocks(mem)
		})
	}
}

// checkBlocks looks into the packed segments.
func (m *mixed) checkBlocks(mem *disktest.Mem) {
	m.t.Helper()
	entries, err := mem.List("/j")
	testkit.OK(m.t, err)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name, extSealed) {
			continue
		}
		b, err := mem.ReadFile("/j/" + e.Name)
		testkit.OK(m.t, err)
		file := bytes.NewReader(b)
		foot, err := recordlog.ReadFooter(file, e.Name, int64(len(b)))
		testkit.OK(m.t, err)
		found := make(map[string]uint64)
		var w walker
		w.Open(file, e.Name, foot.FramesEnd())
		testkit.OK(m.t, w.each(func(h *recordlog.Frame, frame []byte) error {
			if h.Flags != recordlog.FlagBlocks {
				lines, err := linesOf(h, frame[frameHeaderSize:], &w.unpacked)
				if bytes.Contains(lines, []byte("tenant")) {
					m.t.Errorf("a frame without blocks has lines of a tenant: %.200s", lines)
				}
				found[""] += uint64(h.Records)
				return err
			}
			blocks, _, err := recordlog.ParseBlocks(h, frame[frameHeaderSize:])
			for _, k := range blocks {
				if k.Len == 0 {
					continue
				}
				found[k.Tenant] += uint64(k.Records)
				data, err := k.Of(frame[frameHeaderSize:])
				testkit.OK(m.t, err)
				lines, err := unpack(nil, data, h.Codec, k.Unpacked, new(columns.Block))
				testkit.OK(m.t, err)
				for line := range bytes.Lines(lines) {
					if string(TenantOf(line)) != k.Tenant {
						m.t.Fatalf("a block of %q has %s", k.Tenant, line)
					}
				}
			}
			return err
		}, nil))
		if len(foot.Tenants) == 0 {
			if len(found) != 1 || found[""] == 0 {
				m.t.Errorf("%s: the footer lists no tenants, found %v", e.Name, found)
			}
			continue
		}
		for _, k := range foot.Tenants {
			if found[k.Name] != k.Records {
				m.t.Errorf("%s: the footer says %+v, found %v", e.Name, k, found)
			}
		}
	}
}

// Whatever byte of a packed segment is flipped, a reader returns the right lines alone, and
// names the block or the frame that is damaged.
func TestBlocksDamaged(t *testing.T) {
	m := newMixed(t, 1, "", "shop", "bank")
	mem := disktest.NewMem()
	j, err := Open("/j", Options{Disk: mem, SegmentBytes: 20_000, MaxGroupBytes: 3000, Pack: true})
	testkit.OK(t, err)
	m.fill(j, 300)
	waitPacked(t, j)
	testkit.OK(t, j.Close())
	whole, err := mem.ReadFile(seg0)
	testkit.OK(t, err)
	blocks, frames := 0, 0
	for pos := segmentHeaderSize; pos < len(whole); pos += 3 {
		b := bytes.Clone(whole)
		b[pos] ^= 1 << (pos % 8)
		testkit.OK(t, mem.WriteFile(seg0, b))
		j, err := Open("/j", Options{Disk: mem})
		testkit.OK(t, err)
		r := j.NewReader(0)
		next := uint64(0)
		for {
			f, ok, err := r.TryNext()
			var gap *Gap
			if errors.As(err, &gap) {
				if strings.Contains(gap.Reason, "the block of tenant") {
					blocks++
				} else if strings.Contains(gap.Reason, "damaged") {
					frames++
				} else {
					t.Fatalf("byte %d: %v", pos, gap)
				}
				next = gap.To
				continue
			}
			testkit.OK(t, err)
			if !ok {
				break
			}
			if want := strings.Join(m.model[f.First:f.First+uint64(f.Records)], ""); f.First != next || string(f.Lines) != want {
				t.Fatalf("byte %d: at %d %q, want at %d %q", pos, f.First, f.Lines, next, want)
			}
			next = f.end()
		}
		if next != uint64(len(m.model)) {
			t.Fatalf("byte %d: the reader ends at %d", pos, next)
		}
		r.Close()
		testkit.OK(t, j.Close())
	}
	if blocks == 0 || frames == 0 {
		t.Errorf("%d gaps name a block, %d a frame", blocks, frames)
	}
}

// A reader of one tenant reads its blocks and the heads of frames, and nothing else.
func TestTenantReadsItsBlocks(t *testing.T) {
	m := newMixed(t, 2)
	for n := range 20 {
		m.tenants = append(m.tenants, fmt.Sprint("tenant-", n))
	}
	mem := disktest.NewMem()
	j, err := Open("/j", Options{Disk: mem, SegmentBytes: 4 << 20, Pack: true})
	testkit.OK(t, err)
	noise := make([]byte, 300)
	for len(m.model) < 40_000 {
		b := Batch{MaxTime: 1}
		for range 50 {
			tenant := m.tenants[m.rng.IntN(len(m.tenants))]
			for i := range noise {
				noise[i] = 'a' + byte(m.rng.IntN(26))
			}
			line := strings.Replace(tenantLine(len(m.model), tenant, 1), `"msg":"x"`, `"msg":"`+string(noise)+`"`, 1)
			m.model, m.owner = append(m.model, line), append(m.owner, tenant)
			b.Lines = append(b.Lines, line...)
			b.Records++
		}
		mustAppend(t, j, b)
	}
	waitPacked(t, j)
	testkit.OK(t, j.Close())
	var count atomic.Int64
	j, err = Open("/j", Options{Disk: &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
		if op.Kind == disktest.Read {
			count.Add(int64(op.Len))
		}
		return disktest.Fault{}
	}}})
	testkit.OK(t, err)
	defer j.Close()
	read := func(tenant *string) int64 {
		count.Store(0)
		r := j.NewReader(0)
		defer r.Close()
		if tenant != nil {
			r.SetTenant(*tenant)
		}
		for r.Offset() < j.segs[len(j.segs)-1].first {
			if _, ok, err := r.TryNext(); err != nil && err != io.EOF || !ok {
				t.Fatal(ok, err)
			}
		}
		return count.Load()
	}
	all := read(nil)
	for range 3 { // the first time reads footers too
		one := read(&m.tenants[7])
		t.Logf("all: %d bytes read, one of 20 tenants: %d", all, one)
		if one > all/8 {
			t.Errorf("%d of %d bytes were read for one of 20 tenants", one, all)
		}
	}
	nobody := "nobody"
	if n := read(&nobody); n > all/100 {
		t.Errorf("%d of %d bytes were read for a tenant without lines", n, all)
	}
}
