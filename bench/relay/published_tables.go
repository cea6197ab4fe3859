package relay

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rollway/rollway/bench/internal/measure"
)

// publishedTables holds the published benchmark against ours: in memory as it
// was, and on sockets.
func publishedTables(f figures) (string, error) {
	text := "\n### A published benchmark of relay buffers, made again\n\n" + publishedText
	for _, section := range []func(figures) (string, error){claims, publishedFigures, pipeTables, socketTables, growTables, burstTable, getPutTable} {
		made, err := section(f)
		if err != nil {
			return "", err
		}
		text += made
	}
	return text, nil
}

const publishedText = `It pumped bytes between in-memory pipes (net.Pipe) and concluded that the size
of a relay's buffer changes neither the number of reads nor the throughput, that
pooled buffers save the memory of stacks, and that both cost the same CPU. A pipe
hands one Write to one Read, no larger than the Write; a socket gathers what has
arrived until somebody reads it. Its "TLS" is taken here to be the framing alone,
as its throughput is beyond that of encryption; crypto/tls is measured too.
`

// claims says what of the original holds, by figures.
func claims(f figures) (string, error) {
	t := measure.NewTable("what it says", "in memory, as it did it", "on sockets", "holds on sockets")
	ratio := func(where, mode string, value func(measure.Summary) float64) (float64, error) {
		small, ok := f.get(where, poolName(4), mode)
		large, ok2 := f.get(where, poolName(16), mode)
		if !ok || !ok2 {
			return 0, fmt.Errorf("%s, %s: %w", where, mode, errNoSamples)
		}
		return value(small) / value(large), nil
	}
	pipeReads := func(s measure.Summary) float64 { return s.Extra["reads"] }
	socketReads := func(s measure.Summary) float64 { return s.Extra["reads_gib"] }
	for _, c := range []struct {
		says             string
		pipe, pipeMode   string
		pipeValue        func(measure.Summary) float64
		socket, sockMode string
		sockValue        func(measure.Summary) float64
		of               string
	}{
		{"raw: reads are the same for 4 and 16 KiB", pipeB, modePipe + ", " + wrapNone, pipeReads, caseDownload, modeRaw, socketReads, "reads"},
		{"raw: throughput is the same", pipeB, modePipe + ", " + wrapNone, mbps, caseDownload, modeRaw, mbps, "MB/s"},
		{"1,460-byte writes: reads are the same", pipeMTU, modePipe + ", " + wrapNone, pipeReads, caseMTUDown, modeRaw, socketReads, "reads"},
		{"TLS upload: reads are the same", pipeA, modePipe + ", " + wrapTLS, pipeReads, caseUpload, modeTLS, socketReads, "reads"},
		{"TLS upload: CPU is the same", pipeTen, modePipe + ", " + wrapTLS, cpuMs, caseUpload, modeTLS, cpuMs, "CPU"},
		{"raw: CPU is the same", pipeTen, modePipe + ", " + wrapNone, cpuMs, caseUpload, modeRaw, cpuMs, "CPU"},
		{"small messages: the size does not matter", pipeDown, modePipe + ", " + wrapNone, pipeReads, caseSmallDown, modeRaw, socketReads, "reads"},
	} {
		inMemory, err := ratio(c.pipe, c.pipeMode, c.pipeValue)
		if err != nil {
			return "", err
		}
		onSockets, err := ratio(c.socket, c.sockMode, c.sockValue)
		if err != nil {
			return "", err
		}
		t.Row(c.says, fmt.Sprintf("%s 4 ÷ 16 KiB: %.2f", c.of, inMemory), fmt.Sprintf("%s 4 ÷ 16 KiB: %.2f", c.of, onSockets), holds(onSockets > 1/1.1 && onSockets < 1.1))
	}
	if err := memoryClaims(f, t); err != nil {
		return "", err
	}
	large, err := ratio(pipeLarge, modePipe+", "+wrapNone, pipeReads)
	if err != nil {
		return "", err
	}
	text := "\n**What it says and what holds** (it holds if the two sizes differ by less than a tenth)\n\n" + t.String()
	return text + fmt.Sprintf("\nRaw reads in memory are equal only because nobody writes more than 4 KiB at once: with writes of 64 KiB, which it did not try, 4 KiB buffers need %.1f times the reads of 16 KiB ones.\n", large), nil
}

// memoryClaims adds what it says of memory, at the largest N.
func memoryClaims(f figures, t *measure.Table) error {
	at := f.steps(modeRaw)
	if len(at) == 0 {
		return fmt.Errorf("%s: %w", caseGrow, errNoSamples)
	}
	n := at[len(at)-1]
	each := func(name, mode, what string) float64 {
		s, _ := f.get(caseGrow, name, mode)
		return s.Extra[fmt.Sprintf("%s_%d", what, n)] / float64(n)
	}
	both := func(name, mode string) float64 { return each(name, mode, "stack") + each(name, mode, "heap") }
	saved := func(mode string) float64 { // in percent; + 0, as there is no minus nothing
		return math.Round(100*(1-both(poolName(16), mode)/both(stackName, mode))) + 0
	}
	t.Row("a pool instead of a buffer on the stack saves 96 % of memory",
		fmt.Sprintf("stack alone: %s instead of %s; with the heap %.0f %% saved", kib(each(poolName(16), modeNothing, "stack")), kib(each(stackName, modeNothing, "stack")), saved(modeNothing)),
		fmt.Sprintf("stack alone: %s instead of %s, as the compiler moves the buffer to the heap; with the heap %.0f %% saved", kib(each(poolName(16), modeRaw, "stack")), kib(each(stackName, modeRaw, "stack")), saved(modeRaw)),
		holds(saved(modeRaw) > 86))
	small := func(mode string) float64 { return both(poolName(4), mode) / both(poolName(16), mode) }
	t.Row("4 or 16 KiB in the pool is the same for memory",
		fmt.Sprintf("stack and heap 4 ÷ 16 KiB: %.2f", small(modeNothing)), fmt.Sprintf("stack and heap 4 ÷ 16 KiB: %.2f", small(modeRaw)),
		holds(small(modeRaw) > 1/1.1 && small(modeRaw) < 1.1))
	return nil
}

func holds(ok bool) string {
	if ok {
		return "yes"
	}
	return "no"
}

var publishedNames = []string{poolName(4), poolName(8), poolName(16), poolName(64), stackName}

// perRelay makes a table with a column for each of the relays.
func perRelay(f figures, head []string, columns []string, lines [][2]string, label func(line [2]string) []string, cell func(measure.Summary) string) (string, error) {
	t := measure.NewTable(append(append([]string(nil), head...), columns...)...)
	for _, line := range lines {
		cells := label(line)
		found := false
		for _, name := range columns {
			s, ok := f.get(line[0], name, line[1])
			if !ok {
				cells = append(cells, "–")
				continue
			}
			found = true
			cells = append(cells, cell(s))
		}
		if !found {
			return "", fmt.Errorf("%s, %s: %w", line[0], line[1], errNoSamples)
		}
		t.Row(cells...)
	}
	return t.String(), nil
}

func pipeTables(f figures) (string, error) {
	var lines [][2]string
	for _, t := range pipeTransfers(Settings{}) {
		lines = append(lines, [2]string{t.name, modePipe + ", " + t.wrap})
	}
	label := func(line [2]string) []string {
		return []string{line[0], line[1][len(modePipe)+2:]}
	}
	made, err := perRelay(f, []string{"test", "bytes are"}, publishedNames, lines, label, func(s measure.Summary) string {
		return fmt.Sprintf("%.0f MB/s, %.0f", mbps(s), s.Extra["reads"])
	})
	return "\n**Its tests in memory**: throughput, and reads of the pipe for one stream (5 MiB; C by 1,460 bytes and the last ones 10 MiB; D 2 MB down, 1 MB up)\n\n" + made, err
}

func socketTables(f figures) (string, error) {
	var lines [][2]string
	for _, tls := range []bool{false, true} {
		for _, t := range append(bulk(Settings{}, tls), published(Settings{})...) {
			if t.tls == tls {
				lines = append(lines, [2]string{t.name, socketMode(tls)})
			}
		}
	}
	letters := map[string]string{
		caseUpload: "A, C: upload, 64 KiB writes", caseDownload: "B, C: download, 64 KiB writes",
		caseMTUUp: "C: " + caseMTUUp, caseMTUDown: "C: " + caseMTUDown,
		caseSmallUp: "D: " + caseSmallUp, caseSmallDown: "D: " + caseSmallDown, caseTenMB: "10 MB relay",
	}
	label := func(line [2]string) []string {
		wrap := wrapNone
		if line[1] == modeTLS {
			wrap = wrapTLS
		}
		return []string{letters[line[0]], wrap}
	}
	made, err := perRelay(f, []string{"test", "bytes are"}, append(publishedNames, Splice, Ours), lines, label, func(s measure.Summary) string {
		return fmt.Sprintf("%.0f MB/s, %.0f, %.0f ms", mbps(s), s.Extra["reads_gib"], cpuMs(s))
	})
	return "\n**Its tests on sockets**: throughput, reads per GiB, CPU of the relay per GiB (a splice is no read)\n\n" + made, err
}

func growTables(f figures) (string, error) {
	text := ""
	for _, mode := range []string{modeNothing, modePipe, modeRaw, modeTLS} {
		at := f.steps(mode)
		if len(at) == 0 {
			return "", fmt.Errorf("%s, %s: %w", caseGrow, mode, errNoSamples)
		}
		head := []string{"buffer"}
		for _, n := range at {
			head = append(head, fmt.Sprintf("N = %d: stack", n), "heap", "process")
		}
		t := measure.NewTable(head...)
		for _, name := range memoryNames {
			s, ok := f.get(caseGrow, name, mode)
			if !ok {
				continue
			}
			cells := []string{name}
			for _, n := range at {
				for _, what := range []string{"stack", "heap", "process"} {
					cells = append(cells, mib(s.Extra[fmt.Sprintf("%s_%d", what, n)]))
				}
			}
			t.Row(cells...)
		}
		text += "\n**Memory over N, MiB: " + growTitles[mode] + "**\n\n" + t.String()
	}
	return text, nil
}

// steps are the numbers of connections at which memory was looked at.
func (f figures) steps(mode string) []int {
	s, _ := f.get(caseGrow, poolName(16), mode)
	var all []int
	for name := range s.Extra {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, "stack_")); err == nil {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all
}

// memoryNames are those whose memory is measured step by step.
var memoryNames = []string{stackName, poolName(16), poolName(4), Ours}

var growTitles = map[string]string{
	modeNothing: "goroutines that hold a buffer and pass it to nobody, as the original measured",
	modePipe:    "idle relays between in-memory pipes, two goroutines each",
	modeRaw:     "idle connections over sockets",
	modeTLS:     "idle connections over sockets, TLS from the client",
}

func burstTable(f figures) (string, error) {
	t := measure.NewTable("buffer", "over", "heap after the first", "after a collection", "at the peak of the second: heap", "stack")
	found := false
	for _, mode := range []string{modePipe, modeRaw, modeTLS} {
		for _, name := range memoryNames {
			if s, ok := f.get(caseBursts, name, mode); ok {
				found = true
				t.Row(name, mode, mib(s.Extra["idle_heap"]), mib(s.Extra["clean_heap"]), mib(s.Extra["active_heap"]), mib(s.Extra["active_stack"]))
			}
		}
	}
	if !found {
		return "", fmt.Errorf("%s: %w", caseBursts, errNoSamples)
	}
	return "\n**Two bursts of 500 connections, 256 KiB each, MiB**\n\n" + t.String(), nil
}

func getPutTable(f figures) (string, error) {
	t := measure.NewTable("a buffer", "ns")
	for _, s := range getPut() {
		sum, ok := f.get(s.Case, s.Library, s.Mode)
		if !ok {
			return "", fmt.Errorf("%s: %w", s.Library, errNoSamples)
		}
		t.Row(s.Library, measure.Number(sum.Ns))
	}
	return "\n**Get and Put beside the array on the stack**\n\n" + t.String(), nil
}
