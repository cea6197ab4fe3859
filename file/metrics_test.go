package file_test

import (
	"io"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
)

func TestWriteMetrics(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := file.Open(path, file.Options{})
	testkit.OK(t, err)
	write(t, f, "one\ntwo\n")
	testkit.OK(t, f.Rotate())
	testkit.OK(t, f.Close())
	var b strings.Builder
	testkit.OK(t, f.Stats().WriteMetrics(&b, "log", "audit"))
	for _, want := range []string{
		`lines_written_total{log="audit"} 2`,
		`written_bytes_total{log="audit"} 8`,
		`rotations_total{log="audit"} 1`,
		`truncations_total{log="audit"} 0`,
		`info{log="audit",path="` + path + `",mode="Buffered"} 1`,
		`failing{log="audit"} 0`,
	} {
		if !strings.Contains(b.String(), "\nrollway_file_"+want+"\n") {
			t.Errorf("no %s in:\n%s", want, b.String())
		}
	}
	for _, reserved := range []string{"path", "mode"} {
		if err := f.Stats().WriteMetrics(io.Discard, reserved, "x"); err == nil {
			t.Errorf("a label %s was taken", reserved)
		}
	}
}

// Each number of Stats has a metric. Accepted is written plus pending, and a File
// drops nothing.
func TestMetricsOfEachNumber(t *testing.T) {
	var s file.Stats
	v := reflect.ValueOf(&s).Elem()
	values := map[string]string{}
	for _, field := range reflect.VisibleFields(v.Type()) {
		if field.Type.Kind() == reflect.Uint64 && field.Name != "Accepted" {
			n := uint64(1000 + len(values))
			v.FieldByIndex(field.Index).SetUint(n)
			values[field.Name] = strconv.FormatUint(n, 10)
		}
	}
	if len(values) < 20 {
		t.Fatalf("Stats has only %v", values)
	}
	s.Failing, s.LastErrorTime = true, time.Unix(5, 500e6)
	var b strings.Builder
	testkit.OK(t, s.WriteMetrics(&b))
	for name, value := range values {
		if !regexp.MustCompile(`(?m)^rollway_file_\w+ ` + value + `$`).MatchString(b.String()) {
			t.Errorf("no metric has Stats.%s", name)
		}
	}
	for _, want := range []string{"failing 1", "last_error_timestamp_seconds 5.5"} {
		if !strings.Contains(b.String(), "\nrollway_file_"+want+"\n") {
			t.Errorf("no %s in:\n%s", want, b.String())
		}
	}
}
