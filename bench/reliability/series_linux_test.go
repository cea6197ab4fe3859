package reliability

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReadSeries(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	for name, content := range map[string]string{
		"log":                      "third\nfou",
		"log-20261122T010203-1":    "first  \n\n",
		"log-20261122T010204-1":    "     \nsec ond \n",
		"board":                    "not of it",
		"log-20261122T010203-0.gz": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for padded, want := range map[bool]string{
		true:  "first\nsec ond\nthird\nfou",
		false: "first  \n\n     \nsec ond \nthird\nfou",
	} {
		if got, err := readSeries(log, padded); string(got) != want || err != nil {
			t.Errorf("padded %v: %q, %v, want %q", padded, got, err, want)
		}
	}
	to := t.TempDir()
	if err := copySeries(to, log); err != nil {
		t.Fatal(err)
	}
	if got, err := readSeries(filepath.Join(to, "log"), true); string(got) != "first\nsec ond\nthird\nfou" || err != nil {
		t.Errorf("the copy: %q, %v", got, err)
	}
}
