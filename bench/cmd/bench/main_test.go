package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDocumentsAreCurrent: the documents have the tables and pictures that the
// committed results give.
func TestDocumentsAreCurrent(t *testing.T) {
	const docs = "../../../docs"
	for _, p := range programs() {
		if p.report == nil {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			made, err := p.report(filepath.Join(docs, "results", p.results))
			if err != nil {
				t.Fatal(err)
			}
			for path, picture := range made.Pictures {
				if there, err := os.ReadFile(filepath.Join(docs, path)); err != nil || string(there) != picture {
					t.Errorf("%s is of other results: run bench tables %s (%v)", path, p.name, err)
				}
			}
			committed, err := os.ReadFile(filepath.Join(docs, p.document))
			if err != nil {
				t.Fatal(err)
			}
			copied := filepath.Join(t.TempDir(), p.document)
			if err := os.WriteFile(copied, committed, 0o600); err != nil {
				t.Fatal(err)
			}
			made.Pictures = nil
			if err := made.Write(copied, p.marked()); err != nil {
				t.Fatal(err)
			}
			if now, err := os.ReadFile(copied); err != nil || string(now) != string(committed) {
				t.Errorf("%s has tables of other results: run bench tables %s (%v)", p.document, p.name, err)
			}
		})
	}
}
