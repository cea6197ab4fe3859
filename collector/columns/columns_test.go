package columns

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// appLines returns n lines of an application: time, level, msg, service and attributes.
func appLines(r *rand.Rand, n int) []byte {
	var b bytes.Buffer
	at := int64(1779972000_000000000)
	levels := []string{"INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR"}
	for range n {
		at += r.Int64N(2e8)
		fmt.Fprintf(&b, `{"time":"2026-05-28T12:%02d:%02d.%06d000Z","level":"%s","msg":"`, at/6e10%60, at/1e9%60, at/1000%1e6, levels[r.IntN(len(levels))])
		switch r.IntN(4) {
		case 0:
			fmt.Fprintf(&b, `request done in %dms`, r.IntN(3000))
		case 1:
			fmt.Fprintf(&b, `block blk_%d received from 10.%d.%d.%d:%d`, r.Uint64(), r.IntN(256), r.IntN(256), r.IntN(256), r.IntN(65536))
		case 2:
			b.WriteString(`cache \"warm\" é`)
		case 3:
			fmt.Fprintf(&b, `open /var/lib/%s/%x: no such file`, []string{"db", "queue"}[r.IntN(2)], r.Uint64())
		}
		fmt.Fprintf(&b, `","service":"svc-%d"`, r.IntN(20))
		if r.IntN(3) > 0 {
			fmt.Fprintf(&b, `,"trace_id":"%016x%016x","attrs":{"user":"u-%d","ok":%v,"took":%d.%03d,"n":%d,"http":{"status":%d,"path":"/v1/users/%d"},"tags":["a",%d]}`,
				r.Uint64(), r.Uint64(), r.IntN(1e5), r.IntN(2) == 0, r.IntN(100), r.IntN(1000), r.IntN(2000)-1000, 200+r.IntN(4)*100, r.IntN(1e6), r.IntN(5))
		}
		b.WriteString("}\n")
	}
	return b.Bytes()
}

func encoder(t testing.TB) *Encoder {
	e, err := NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestLinesComeBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	cases := map[string]string{
		"app":            string(appLines(r, 3000)),
		"few":            "{\"a\":1}\n",
		"no objects":     strings.Repeat("plain text\n\n{}\n[1]\n{\"a\":1}}\n{\"a\"\n", 10),
		"no end of line": strings.Repeat("{\"a\":1}\n", 30) + "{\"a\":2}",
		"raw bytes":      strings.Repeat("{\"a\x00b\":1}\n{\"a\":\"x\x00y12\"}\n\x00\n\xff\n", 20),
		"same key twice": strings.Repeat(`{"a":1,"a":2,"b":{"c":1,"c":2}}`+"\n", 20),
		"escaped key":    strings.Repeat(`{"a\"b":1}`+"\n", 20),
		"empty values":   strings.Repeat(`{"a":{},"b":[],"c":"","d":null}`+"\n"+`{"a":{"x":{}},"b":"[1]"}`+"\n", 20),
		"white space":    strings.Repeat(`{ "a": 1 }`+"\n"+`{"a": 1}`+"\n"+`{"a":1 }`+"\n", 20),
		"deep":           strings.Repeat(strings.Repeat(`{"a":`, 12)+"1"+strings.Repeat("}", 12)+"\n", 20),
	}
	numbers := ""
	for i, n := range strings.Fields("0 -0 -0.0 0.0 00 01 1 -1 1.5 1.50 1e9 9223372036854775807 -9223372036854775808 999999999999999999 0.000 -0.001 12.000 1000 -1000 2000000") {
		one := strings.Repeat(fmt.Sprintf("{\"n\":%s}\n{\"n\":%d}\n", n, i), 10)
		numbers += one
		cases["number "+n] = one
	}
	cases["numbers"] = numbers
	times := ""
	for _, s := range strings.Fields("2026-05-28T12:40:00.123456789Z 1969-12-31T23:59:59.999999999Z 0000-01-01T00:00:00.000000000Z 9999-12-31T23:59:59.999999999Z 2026-02-30T00:00:00.000000000Z 2026-05-28T12:40:60.000000000Z 2026-05-28t12:40:00.000000000z") {
		one := fmt.Sprintf("{\"time\":\"2026-05-28T12:40:00.120000000Z\"}\n{\"time\":\"%s\"}\n", s)
		times += one
		cases["time "+s] = strings.Repeat(one, 20)
	}
	cases["times"] = strings.Repeat(times, 3)
	var many strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&many, "{\"k%d\":%d}\n", i, i)
	}
	cases["many shapes"] = many.String()
	files, _ := filepath.Glob("../query/testdata/*.ndjson")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		cases[name] = strings.Repeat(string(text), 30)
	}
	e, b := encoder(t), new(Block)
	for name, lines := range cases {
		for range 2 { // with the memory of others
			block := e.Append(nil, []byte(lines))
			got, err := b.AppendLines([]byte("before"), block, len(lines))
			if err != nil || string(got) != "before"+lines {
				t.Fatalf("%s: %v; got %d bytes, want %d", name, err, len(got)-6, len(lines))
			}
		}
	}
}

// TestSmaller compares a block with the lines as zstd packs them.
func TestSmaller(t *testing.T) {
	lines := appLines(rand.New(rand.NewPCG(1, 2)), 4000)
	e := encoder(t)
	block, packed := e.Append(nil, lines), e.zstd.EncodeAll(lines, nil)
	if block[0] != formColumns || len(block)*10 > len(packed)*8 {
		t.Errorf("%d bytes of lines: a block has %d, zstd %d", len(lines), len(block), len(packed))
	}
}

// TestDamage changes, cuts and lengthens blocks: the answer is the lines or an error.
func TestDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	lines := appLines(r, 200)
	block := encoder(t).Append(nil, lines)
	b := new(Block)
	for range 5000 {
		bad := bytes.Clone(block)
		switch r.IntN(4) {
		case 0:
			bad = bad[:r.IntN(len(bad))]
		default:
			for range 1 + r.IntN(3) {
				bad[r.IntN(len(bad))] ^= byte(1 + r.IntN(255))
			}
		}
		if got, err := b.AppendLines(nil, bad, len(lines)); err == nil && len(got) != len(lines) {
			t.Fatalf("%d bytes instead of %d without an error", len(got), len(lines))
		}
		if b.Open(bad, len(lines)) == nil {
			_ = b.readOne(r.IntN(b.Len()))
		}
	}
	if got, err := b.AppendLines(nil, block, len(lines)); err != nil || !bytes.Equal(got, lines) {
		t.Fatalf("after damaged blocks: %v", err)
	}
	if _, err := b.AppendLines(nil, block, len(lines)-1); err != ErrDamaged {
		t.Errorf("a wrong size: %v", err)
	}
	if _, err := b.AppendLines(nil, nil, 0); err != ErrDamaged {
		t.Errorf("no block: %v", err)
	}
}

// readOne reads one row.
func (b *Block) readOne(row int) []byte {
	rows := b.Rows()
	rows.add(row)
	got, _ := b.AppendRows(nil, rows, nil)
	return bytes.Trim(got, "\n")
}

// TestOneRow reads single rows of texts with many templates, then searches and reads all.
func TestOneRow(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	e, b := encoder(t), new(Block)
	for _, templates := range []int{1, 2, 40, 254, 255, 256, 257, 300} {
		for _, plain := range []string{"", "x"} { // with and without texts that are stored whole
			lines := appLines(r, 500)
			for i := range 5 * templates {
				lines = fmt.Appendf(lines, "{\"t\":\"%c%c of %d\",\"x\":\"%x\"}\n", 'a'+i/5/20, 'a'+i/5%20, r.IntN(1e6), r.Uint32())
			}
			for i := range 3 * len(plain) {
				lines = fmt.Appendf(lines, "{\"t\":\"alone%c\",\"x\":\"\"}\n", 'a'+i)
			}
			want, block := bytes.Split(lines, []byte{'\n'}), e.Append(nil, lines)
			for range 20 {
				if err := b.Open(block, len(lines)); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					if row := r.IntN(b.Len()); !bytes.Equal(b.readOne(row), want[row]) {
						t.Fatalf("%d templates: row %d is %s, want %s", templates, row, b.readOne(row), want[row])
					}
				}
				some := []byte(fmt.Sprintf("%c of %d", 'a'+r.IntN(20), r.IntN(10)))
				out := b.Rows()
				if err := b.Find(out, func(string) *Matcher { return &Matcher{Any: [][]byte{some}} }); err != nil {
					t.Fatal(err)
				}
				for row := range b.Len() {
					if out.Has(row) != bytes.Contains(want[row], some) {
						t.Fatalf("%d templates: %s in %s: %v", templates, some, want[row], out.Has(row))
					}
				}
				if got, err := b.AppendRows(nil, nil, nil); err != nil || !bytes.Equal(got, lines) {
					t.Fatalf("%d templates: %v", templates, err)
				}
			}
		}
	}
}

// forge returns a block with the directory, which is not packed, and the chunks.
func forge(dir, chunks []byte) []byte {
	block := binary.AppendUvarint([]byte{formColumns}, uint64(len(dir)))
	return append(append(binary.AppendUvarint(block, uint64(len(dir))), dir...), chunks...)
}

// mostAllocated is how many bytes a reader may allocate for a block of lines with size bytes.
func mostAllocated(size int) uint64 { return uint64(100*size) + 4<<20 }

// decoded reads a block in both ways, and checks what that takes.
func decoded(t *testing.T, name string, block []byte, size int) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := new(Block).AppendLines(nil, block, size)
	if err == nil && len(got) != size {
		t.Fatalf("%s: %d bytes instead of %d without an error", name, len(got), size)
	}
	if b := new(Block); b.Open(block, size) == nil {
		if b.Len() > 0 {
			_ = b.readOne(0)
		}
		rows := b.Rows()
		_ = b.Find(rows, func(string) *Matcher { return &Matcher{Any: [][]byte{{'1'}}} })
		_, _ = b.AppendRows(nil, rows, func(path string) bool { return len(path)%2 == 0 })
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > mostAllocated(size) {
		t.Fatalf("%s: %d bytes were allocated for %d bytes of lines, at most %d may be", name, took, size, mostAllocated(size))
	}
	if b := new(Block); b.Open(block, size) == nil {
		_ = b.Find(b.Rows(), func(string) *Matcher { return &Matcher{Any: [][]byte{{' '}}} }) // joins all texts
	}
}

// TestForgedDirectory changes directories below their checksums and their zstd: whatever they say,
// nothing panics, and memory has a bound by the size of the lines.
func TestForgedDirectory(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	e := encoder(t)
	lines := appLines(r, 60)
	e.Append(nil, lines)
	dir, chunks := bytes.Clone(e.dir), bytes.Clone(e.chunks)
	decoded(t, "unchanged", forge(dir, chunks), len(lines))
	for round := range 1500 {
		bad := bytes.Clone(dir)
		for range 1 + r.IntN(3) {
			switch at := r.IntN(len(bad)); r.IntN(4) {
			case 0:
				bad[at] ^= 1 << r.IntN(8)
			case 1:
				bad[at] = byte(r.IntN(256))
			case 2:
				bad = append(bad[:at:at], bad[min(len(bad)-1, at+1+r.IntN(4)):]...)
			case 3:
				bad = append(append(bad[:at:at], byte(r.IntN(256)), byte(r.IntN(256))), bad[at:]...)
			}
		}
		decoded(t, fmt.Sprint("round ", round), forge(bad, chunks), len(lines))
	}
}

// TestForgedColumns has directories that ask for much with few bytes.
func TestForgedColumns(t *testing.T) {
	const size = 1 << 20
	uvarint := func(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }
	constantInts := []byte{0, 0} // width 0, least 0: as many as one likes
	noStrings := []byte{0}       // an empty stream
	column := func(n int, head []byte) []byte {
		return append(append(append(uvarint(n), 0), uvarint(len(head))...), head...)
	}
	directory := func(rows int, shapes []string, columns ...[]byte) []byte {
		dir := append(uvarint(rows), uvarint(len(shapes))...)
		for _, s := range shapes {
			dir = append(append(dir, uvarint(len(s))...), s...)
		}
		dir = append(append(dir, uvarint(len(columns)+1)...), column(rows, constantInts)...)
		return append(dir, bytes.Join(columns, nil)...)
	}
	var many, deep strings.Builder
	for i := range 200 {
		fmt.Fprintf(&many, `,"k%d":%s`, i, "\x00")
	}
	for range 60_000 {
		deep.WriteString("{\"a\":\x00,\"b\":")
	}
	texts := append([]byte{formTexts, 0}, append(noStrings, constantInts...)...)
	wide := make([][]byte, 200)
	for i := range wide {
		wide[i] = column(size, append([]byte{formDigits, maxDigits}, constantInts...))
	}
	for name, dir := range map[string][]byte{
		"a shape with a path twice":  directory(20, []string{"{\"a\":\x00,\"a\":\x00}\n"}),
		"a shape that is no object":  directory(20, []string{"}\x00"}),
		"no shape":                   directory(20, nil),
		"deep paths":                 directory(20, []string{deep.String()}),
		"long paths":                 directory(20, []string{"{\"" + strings.Repeat("k", size) + `":{"a":` + "\x00" + many.String() + "}}\n"}),
		"many values":                directory(size, []string{"{" + many.String()[1:] + "}\n"}, wide...),
		"texts in texts, and so on":  directory(size, []string{"\x00"}, column(size, bytes.Repeat(texts, 500_000))),
		"a dictionary of nothing":    directory(size, []string{"\x00"}, column(size, append([]byte{formDictionary, 0, 0}, constantInts...))),
		"digits of a mebibyte":       directory(size, []string{"\x00"}, column(size, append([]byte{formDigits, maxDigits}, constantInts...))),
		"strings without any bytes":  directory(size, []string{"\x00"}, column(size, append(append([]byte{formStrings}, constantInts...), 0))),
		"hexadecimal, of no digits":  directory(size, []string{"\x00"}, column(size, []byte{formHex, 0, 0})),
		"times of width 0":           directory(size, []string{"\x00"}, column(size, append([]byte{formTimes}, constantInts...))),
		"a chunk beyond the last":    directory(size, []string{"\x00"}, column(size, []byte{formStrings, 1, 0, 0xff, 0xff, 0x7f})),
		"more columns than of paths": directory(size, []string{"\x00"}, wide...),
	} {
		decoded(t, name, forge(dir, nil), size)
	}
	holes := encoder(t).zstd.EncodeAll(make([]byte, size-1000), nil)
	head := binary.AppendVarint([]byte{formTexts, 1, 0}, size-1000) // a template of that length
	head = append(append(head, uvarint(2*(size-1000)+1)...), uvarint(len(holes))...)
	head = binary.AppendVarint(append(head, 0), 1)
	decoded(t, "holes without variables", forge(directory(20, []string{"\x00"}, column(20, head)), holes), size)
}

// FuzzBlock encodes any text, and reads any block.
func FuzzBlock(f *testing.F) {
	e := encoder(f)
	r := rand.New(rand.NewPCG(5, 6))
	lines := appLines(r, 40)
	f.Add(lines)
	f.Add(e.Append(nil, lines))
	f.Add([]byte(strings.Repeat("{\"a\":{\"b\":\"x1\"}}\n", 17)))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := new(Block)
		block := e.Append(nil, data)
		if got, err := b.AppendLines(nil, block, len(data)); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%v: %q", err, got)
		}
		_, _ = b.AppendLines(nil, data, 1<<16)
	})
}

func BenchmarkEncode(b *testing.B) {
	lines := appLines(rand.New(rand.NewPCG(1, 2)), 4000)
	e := encoder(b)
	var block []byte
	b.SetBytes(int64(len(lines)))
	for b.Loop() {
		block = e.Append(block[:0], lines)
	}
	b.ReportMetric(float64(len(lines))/float64(len(block)), "ratio")
	b.ReportMetric(float64(len(lines))/float64(len(e.zstd.EncodeAll(lines, nil))), "zstd-ratio")
}

func BenchmarkDecode(b *testing.B) {
	lines := appLines(rand.New(rand.NewPCG(1, 2)), 4000)
	block := encoder(b).Append(nil, lines)
	var d Block
	var out []byte
	b.SetBytes(int64(len(lines)))
	for b.Loop() {
		var err error
		if out, err = d.AppendLines(out[:0], block, len(lines)); err != nil {
			b.Fatal(err)
		}
	}
}
