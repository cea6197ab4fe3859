package relay

import (
	"fmt"

	"github.com/rollway/rollway/bench/internal/measure"
)

// publishedFigures holds each figure that was published beside the same test
// made again in memory, and beside our relay on sockets.
func publishedFigures(f figures) (string, error) {
	text := "\n**Its figures, and ours** (MB/s, reads; its machine was another one, so only the relations compare)\n\n"
	t := measure.NewTable("test", "buffer", "published", "made again in memory", "rollway relay on sockets")
	for _, p := range []struct {
		test, buffer, published string
		pipe, wrap              string
		socket, mode            string
	}{
		{"A: upload through TLS", poolName(4), "7,460–7,700, 322", pipeA, wrapRecords, caseUpload, modeTLS},
		{"A: upload through TLS", poolName(8), "7,400–7,480, 322", pipeA, wrapRecords, caseUpload, modeTLS},
		{"A: upload through TLS", poolName(16), "7,470–7,540, 322", pipeA, wrapRecords, caseUpload, modeTLS},
		{"B: download, raw", poolName(4), "1,946–1,950, 1,281", pipeB, wrapNone, caseDownload, modeRaw},
		{"B: download, raw", poolName(8), "1,942–1,946, 1,281", pipeB, wrapNone, caseDownload, modeRaw},
		{"B: download, raw", poolName(16), "1,935–1,948, 1,281", pipeB, wrapNone, caseDownload, modeRaw},
		{"C: burst", poolName(4), "12,033–12,674, 1,281", pipeBurst, wrapNone, caseDownload, modeRaw},
		{"C: burst", poolName(16), "12,679–12,751, 1,281", pipeBurst, wrapNone, caseDownload, modeRaw},
		{"C: 1,460-byte writes", poolName(4), "2,816–2,848, 7,184", pipeMTU, wrapNone, caseMTUDown, modeRaw},
		{"C: 1,460-byte writes", poolName(16), "2,833–2,856, 7,184", pipeMTU, wrapNone, caseMTUDown, modeRaw},
		{"C: upload through TLS", poolName(4), "7,630–7,644, 322", pipeMedia, wrapRecords, caseUpload, modeTLS},
		{"C: upload through TLS", poolName(16), "7,688–7,823, 322", pipeMedia, wrapRecords, caseUpload, modeTLS},
		{"D: small messages down", poolName(4), "392–396, 10,001", pipeDown, wrapNone, caseSmallDown, modeRaw},
		{"D: small messages down", poolName(16), "400–402, 10,001", pipeDown, wrapNone, caseSmallDown, modeRaw},
		{"D: small messages up", poolName(4), "2,023–2,025, 64", pipeUp, wrapRecords, caseSmallUp, modeTLS},
		{"D: small messages up", poolName(16), "2,012–2,028, 64", pipeUp, wrapRecords, caseSmallUp, modeTLS},
		{"G: 10 MB, raw", stackName, "11,018", pipeTen, wrapNone, caseTenMB, modeRaw},
		{"G: 10 MB, raw", poolName(16), "10,952", pipeTen, wrapNone, caseTenMB, modeRaw},
		{"G: 10 MB, raw", poolName(4), "11,004", pipeTen, wrapNone, caseTenMB, modeRaw},
		{"G: 10 MB, TLS", stackName, "9,788", pipeTen, wrapRecords, caseTenMB, modeTLS},
		{"G: 10 MB, TLS", poolName(16), "9,633", pipeTen, wrapRecords, caseTenMB, modeTLS},
		{"G: 10 MB, TLS", poolName(4), "9,676", pipeTen, wrapRecords, caseTenMB, modeTLS},
	} {
		again, ok := f.get(p.pipe, p.buffer, modePipe+", "+p.wrap)
		own, ok2 := f.get(p.socket, Ours, p.mode)
		if !ok || !ok2 {
			return "", fmt.Errorf("%s, %s: %w", p.test, p.buffer, errNoSamples)
		}
		t.Row(p.test, p.buffer, p.published, fmt.Sprintf("%.0f, %.0f", mbps(again), again.Extra["reads"]), fmt.Sprintf("%.0f, %.0f ms CPU per GiB", mbps(own), cpuMs(own)))
	}
	text += t.String()
	m := measure.NewTable("E: MB of stacks", "buffer", "published", "made again: goroutines alone", "rollway relay on sockets: stacks and heap")
	at := []int{100, 500, 1000, 2000}
	for _, p := range []struct {
		buffer    string
		published [4]string
	}{
		{stackName, [4]string{"3.2", "16.4", "32.8", "65.5"}},
		{poolName(16), [4]string{"0", "0.03–0.1", "0.4–0.8", "2.1–2.4"}},
		{poolName(4), [4]string{"0", "0–0.1", "0.5–0.7", "2.3–2.5"}},
	} {
		again, ok := f.get(caseGrow, p.buffer, modeNothing)
		own, ok2 := f.get(caseGrow, Ours, modeRaw)
		if !ok || !ok2 {
			return "", fmt.Errorf("%s, %s: %w", caseGrow, p.buffer, errNoSamples)
		}
		for i, n := range at {
			stack, heap := fmt.Sprintf("stack_%d", n), fmt.Sprintf("heap_%d", n)
			m.Row(fmt.Sprintf("N = %d", n), p.buffer, p.published[i], mb(again.Extra[stack]), mb(own.Extra[stack]+own.Extra[heap]))
		}
	}
	text += "\n" + m.String()
	b := measure.NewTable("F: two bursts of 500, MB", "published", "made again in memory", "rollway relay on sockets")
	own, ok := f.get(caseBursts, Ours, modeRaw)
	if !ok {
		return "", fmt.Errorf("%s: %w", caseBursts, errNoSamples)
	}
	for _, p := range []struct{ buffer, idle, active string }{
		{poolName(4), "5.6–8.1", "8 and 2.7"},
		{poolName(16), "11.9–13.9", "13 and 2.7"},
	} {
		again, ok := f.get(caseBursts, p.buffer, modePipe)
		if !ok {
			return "", fmt.Errorf("%s, %s: %w", caseBursts, p.buffer, errNoSamples)
		}
		b.Row(p.buffer+": idle heap after the first", p.idle, mb(again.Extra["idle_heap"]), mb(own.Extra["idle_heap"]))
		active := func(s measure.Summary) string {
			return mb(s.Extra["active_heap"]) + " and " + mb(s.Extra["active_stack"])
		}
		b.Row(p.buffer+": heap and stacks during the second", p.active, active(again), active(own))
	}
	text += "\n" + b.String()
	g := measure.NewTable("a buffer, ns", "published", "ours")
	published := []string{"7.3", "0.25", "–"}
	for i, s := range getPut() {
		sum, ok := f.get(s.Case, s.Library, s.Mode)
		if !ok || i >= len(published) {
			return "", fmt.Errorf("%s: %w", s.Library, errNoSamples)
		}
		g.Row(s.Library, published[i], measure.Number(sum.Ns))
	}
	return text + "\n" + g.String(), nil
}
