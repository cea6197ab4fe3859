package collector

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/rollway/rollway/collector/config"
)

// documentedNames are the patterns of names in the table of docs/FORMAT.md's section
// "Data folder": N is a digit, * a part of a name.
func documentedNames(t *testing.T) []*regexp.Regexp {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "docs", "FORMAT.md"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var patterns []*regexp.Regexp
	row, inside := regexp.MustCompile("^\\| `([^`]+)` \\|"), false
	for in := bufio.NewScanner(f); in.Scan(); {
		if strings.HasPrefix(in.Text(), "## ") {
			inside = in.Text() == "## Data folder"
		}
		if m := row.FindStringSubmatch(in.Text()); m != nil && inside {
			p := strings.NewReplacer(strings.Repeat("N", 20), "[0-9]{20}", `\*\.`, `[^/]*\.`, `\*`, "[^/]+").Replace(regexp.QuoteMeta(m[1]))
			patterns = append(patterns, regexp.MustCompile("^"+p+"$"))
		}
	}
	if len(patterns) < 10 {
		t.Fatalf("%d names are documented", len(patterns))
	}
	return patterns
}

// Every file of a data folder that was used is documented, and each pattern that
// such use makes files of is the name of one.
func TestDataFolderIsDocumented(t *testing.T) {
	patterns := documentedNames(t)
	cfg := testConfig(t)
	cfg.Journal.SegmentSize, cfg.Limits.MaxEvent, cfg.Rejected.KeepSize = config.MiB, 300*config.KiB, config.MiB
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, cfg.Kafka.Topic))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	cfg.Kafka.Brokers = strings.Join(cluster.ListenAddrs(), " ")
	seen := map[string]bool{}
	look := func() {
		t.Helper()
		err := filepath.WalkDir(cfg.Data, func(path string, d os.DirEntry, err error) error {
			if os.IsNotExist(err) { // it was renamed meanwhile
				return nil
			}
			if err != nil || path == cfg.Data {
				return err
			}
			name, err := filepath.Rel(cfg.Data, path)
			if err != nil {
				return err
			}
			if name = filepath.ToSlash(name); d.IsDir() {
				name += "/"
			}
			found := false
			for _, p := range patterns {
				if p.MatchString(name) {
					seen[p.String()], found = true, true
				}
			}
			if !found {
				t.Errorf("%s is not in docs/FORMAT.md", name)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r := run(t, cfg)
	large := `{"msg":"` + strings.Repeat("x", 200_000) + `"}`
	for i := range 12 { // two segments and more, and two files of rejected events
		if a, err := r.postKeyed(strings.Repeat("k", i+1), large); err != nil || a.code != 200 {
			t.Fatal(a, err)
		}
		r.do(t, "POST", "/api/logs", strings.Repeat("{\"a\":"+strings.Repeat("y", 10_000)+"\n", 3))
		look()
	}
	for end := time.Now().Add(time.Minute); r.Stats().Journal.PackedSegments == 0 || r.Stats().Sinks[0].Pending > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("nothing is packed, or delivered, within a minute: %+v", r.Stats())
		}
	}
	look()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	look()
	// A damaged segment is set aside.
	open, err := filepath.Glob(filepath.Join(cfg.Data, "journal", "*.open"))
	if err != nil || len(open) == 0 {
		open, err = filepath.Glob(filepath.Join(cfg.Data, "journal", "*.seg"))
	}
	if err != nil || len(open) == 0 {
		t.Fatal("no segment: ", err)
	}
	if err := os.WriteFile(open[len(open)-1], []byte(strings.Repeat("damaged ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, cfg)
	look()
	for _, want := range []string{"ledger.json", "journal/ID", "journal/LOCK", "journal/N{20}.open", "journal/N{20}.seg", "journal/*.bad", "journal/cursors/*", "rejected/*.ndjson"} {
		name := strings.NewReplacer("N{20}", strings.Repeat("0", 20), "*", "x").Replace(want)
		hit := false
		for _, p := range patterns {
			hit = hit || p.MatchString(name) && seen[p.String()]
		}
		if !hit {
			t.Errorf("no file like %s was there: what was tried is less than it should be", name)
		}
	}
}
