package query

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/disktest"
)

// A tenant's query finds and counts its own lines, packed or not, and no expression finds
// another's.
func TestOnly(t *testing.T) {
	s := openStore(t, journal.Options{Disk: disktest.NewMem(), SegmentBytes: 20_000, Pack: true})
	const n = 2000
	for i := range n {
		tenant := []string{`"shop"`, `"bank"`, `["shop"]`, `7`}[i%4]
		line := strings.Replace(testLine(i, "INFO", "shop"), `"attrs":{`, `"attrs":{"tenant":`+tenant+`,`, 1)
		s.add(t, line)
	}
	for end := time.Now().Add(time.Minute); s.Stats().PackedSegments < uint64(s.Stats().Segments-1); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not packed within a minute: %+v", s.Stats())
		}
	}
	a, err := over(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(tenant, params string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		a.ServeQuery(w, Only(httptest.NewRequest("GET", "/api/query?"+params, nil), tenant))
		return w
	}
	for _, row := range []struct {
		tenant, q      string
		found, scanned int
	}{
		{"shop", "", n / 4, n / 4},
		{"shop", "shop", n / 4, n / 4},
		{"shop", "n>=0 or attrs.tenant=bank or attrs.tenant=7", n / 4, n / 4},
		{"shop", "nothing", 0, n / 4},
		{"bank", "n<400", 100, n / 4},
		{"7", "", 0, 0},
		{"other", "", 0, 0},
	} {
		for _, params := range []string{"", "&last=100000", "&from=0"} {
			w := ask(row.tenant, "q="+url.QueryEscape(row.q)+params)
			lines := slices.Collect(strings.Lines(w.Body.String()))
			for _, line := range lines {
				if !strings.Contains(line, fmt.Sprintf(`"tenant":%q`, row.tenant)) {
					t.Fatalf("%+v: found %s", row, line)
				}
			}
			if got := w.Header().Get("Rollway-Scanned"); w.Code != 200 || len(lines) != row.found || got != fmt.Sprint(row.scanned) {
				t.Errorf("%+v %s: %d, %d lines, %s scanned", row, params, w.Code, len(lines), got)
			}
		}
	}
}
